"""The tasks: a folder of data for each, and nothing of a task in the code.

A task's folder holds `task.json`, `crashes.json` and `recording.jsonl`: real tracebacks and a recorded model. What it
works on is an application with real bugs and its tests, the one in `base`, with the files in the task's own `workspace`
added or put in place of those. A run's task is the task's name and no more, so that a listing of runs can be searched
for it; what is to be done stands in the agent's instructions.
"""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import msgspec

import runner
from runner.triage.errors import NoSuchTask

_DATA = Path(__file__).with_name("world")


class Patch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One edit of a file: `old` stood there once, `new` replaces it."""

    path: str
    old: str
    new: str


class Fix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A crash group whose cause is to be found: what its fix and its issue come to.

    `names` must all stand in the issue; `shows` is what the application prints last after the crash's input, listed.
    """

    crash: str
    cause: str
    names: tuple[str, ...]
    patch: Patch
    test: str
    shows: tuple[str, ...]


class Same(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A crash group with a cause that has its issue already: a comment there names the group, and nothing is filed."""

    crash: str
    cause: str
    test: str
    shows: tuple[str, ...]


class Unseen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A crash group that can't be reproduced: the test that tried passes, and nothing is patched or filed."""

    crash: str
    test: str


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a finished run leaves behind in the workspace and the tracker, for the checks to compare.

    `comments` is how many the issues have together; `corrected` names the crash groups whose first patch did not pass
    its test.
    """

    fixes: tuple[Fix, ...]
    same: tuple[Same, ...] = ()
    unseen: tuple[Unseen, ...] = ()
    corrected: tuple[str, ...] = ()
    comments: int = 0

    @property
    def tests(self) -> set[str]:
        """The test files that are to be written."""
        groups: tuple[Fix | Same | Unseen, ...] = (*self.fixes, *self.same, *self.unseen)
        return {group.test for group in groups}


class _Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    instructions: str
    tools: tuple[str, ...]
    checks: tuple[str, ...]
    expected: Expected
    shorten: runner.SummariseAfter | None = None
    base: tuple[str, ...] | None = None
    """The files of the base application that the task needs; None for all."""


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
    """One task by its name. Raises `NoSuchTask`, which names those there are.

    Its runs are started with the name. `tools` are the names of those that the model is given, `checks` of those that
    are made afterwards, `context` is when a summary is due.
    """

    def __init__(self, name: str) -> None:
        if name not in names():
            raise NoSuchTask(name, names())
        self.name = name
        self._folder = _DATA / name
        card = msgspec.json.decode((self._folder / "task.json").read_bytes(), type=_Card)
        self.instructions = card.instructions
        self.tools, self.checks = card.tools, card.checks
        self.expected, self.context, self._base = card.expected, card.shorten, card.base
        self.recording = self._folder / "recording.jsonl"

    @cached_property
    def files(self) -> dict[str, bytes]:
        """What a workspace holds before anybody has worked in it, by path."""
        base = {
            path: data for path, data in contents(_DATA / "base").items() if self._base is None or path in self._base
        }
        return base | contents(self._folder / "workspace")

    def unpack(self, folder: Path) -> None:
        """Put the files into `folder`, which must not exist."""
        for path, data in self.files.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)

    def crashes(self) -> list[Crash]:
        """The crash groups, the most reported first."""
        found = msgspec.json.decode((self._folder / "crashes.json").read_bytes(), type=list[Crash])
        return sorted(found, key=lambda crash: -crash.reports)


def names() -> tuple[str, ...]:
    """The tasks there are."""
    return tuple(sorted(card.parent.name for card in _DATA.glob("*/task.json")))


def files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every file under `folder` with its relative path, in order; not what an interpreter leaves there."""
    for place in sorted(folder.rglob("*")):
        path = place.relative_to(folder).as_posix()
        if place.is_file() and "__pycache__" not in path and not path.endswith(".pyc"):
            yield path, place


def contents(folder: Path) -> dict[str, bytes]:
    return {path: place.read_bytes() for path, place in files(folder)}
