"""The tasks: a folder of data for each, and nothing of a task in the code but its checks.

A task's folder holds `task.json`, the `workspace` to unpack, `crashes.json` and `recording.jsonl`. It is data: an
application with a real bug, its tests, real tracebacks and a recorded model.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from runner.triage.errors import NoSuchTask

_DATA = Path(__file__).with_name("world")


class Patch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One edit of a file: `old` stood there once, `new` replaces it."""

    path: str
    old: str
    new: str

    def apply(self, text: str) -> str:
        """`text` with the edit made."""
        return text.replace(self.old, self.new, 1)


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a finished run leaves in the world: what the checks hold it against.

    `names` must all stand in the issue; `shows` is what the application lists last after the crash's input.
    """

    crash: str
    cause: str
    names: tuple[str, ...]
    patch: Patch
    test: str
    shows: tuple[str, ...]


class _Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    task: str
    instructions: str
    expected: Expected


class Crash(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A group of crashes with one traceback. `input` is what was typed; the first and last time are dates."""

    id: str
    error: str
    reports: int
    version: str
    first: str
    last: str
    input: tuple[str, ...]
    traceback: str


class Task:
    """One task by its name. Raises `NoSuchTask`, which names those there are."""

    def __init__(self, name: str) -> None:
        if name not in names():
            raise NoSuchTask(name, names())
        self.name = name
        self.folder = _DATA / name
        card = msgspec.json.decode((self.folder / "task.json").read_bytes(), type=_Card)
        self.text = f"{name}: {card.task}"
        self.instructions = card.instructions
        self.expected = card.expected
        self.original = self.folder / "workspace"
        self.recording = self.folder / "recording.jsonl"

    def crashes(self) -> list[Crash]:
        """The crash groups, the most reported first."""
        found = msgspec.json.decode((self.folder / "crashes.json").read_bytes(), type=list[Crash])
        return sorted(found, key=lambda crash: -crash.reports)


def names() -> tuple[str, ...]:
    """The tasks there are."""
    return tuple(sorted(folder.name for folder in _DATA.iterdir() if (folder / "task.json").is_file()))


def files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every file under `folder` with its relative path, in order; not what an interpreter leaves there."""
    for place in sorted(folder.rglob("*")):
        path = place.relative_to(folder).as_posix()
        if place.is_file() and "__pycache__" not in path and not path.endswith(".pyc"):
            yield path, place
