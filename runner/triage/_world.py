"""A task's world: the directory where a run's effects land, beside its log and never inside it.

It holds `workspace/`, unpacked once, `tracker.sqlite` with the tracker's other files, and the lock that keeps a
second process out of the workspace. Whether a workspace is there is decided by its name alone: it appears complete or
not at all.

Beside the tracker's file are the faults that it was given. The tracker reads them at every request, so a running one
changes at once. The job reads them when it declares its tools, because a tool's effect is a statement about the
service: a tracker that ignores keys makes filing a `non_idempotent`.
"""

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from runner.triage import _files
from runner.triage._task import Task, contents
from runner.triage.errors import WorldHeld, WrongWorld

DAY = 86_400.0


class TrackerFaults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the tracker misbehaves; without arguments it does not.

    Args:
        ignore_keys: every request makes a new issue or comment.
        key_ttl: seconds for which a key is remembered.
        delay: seconds between the commit and the reply.
        lookup_down: asking for what came under a key answers 503.
    """

    ignore_keys: bool = False
    key_ttl: float = DAY
    delay: float = 0.0
    lookup_down: bool = False


def faults_of(world: Path) -> TrackerFaults:
    """The faults that `world` keeps; none if none were set.

    Raises:
        WrongWorld: the file holds something else. A misspelt fault that is ignored would let a test pass for nothing.
    """
    try:
        return msgspec.json.decode(_files.read(world / "tracker.json"), type=TrackerFaults)
    except FileNotFoundError:
        return TrackerFaults()
    except (OSError, msgspec.MsgspecError, UnicodeError) as error:
        raise WrongWorld(str(world), f"tracker.json can't be read: {error}") from error


def set_faults(world: Path, faults: TrackerFaults) -> None:
    """Keep `faults` in `world`, which is made (mode 0700) if absent. A running tracker has them at its next request.

    Raises:
        WrongWorld: there can't be a world at this path.
    """
    try:
        _files.make_private(world)
        _files.replace(world / "tracker.json", msgspec.json.format(msgspec.json.encode(faults)) + b"\n")
    except OSError as error:
        raise WrongWorld(str(world), error.strerror or str(error)) from error


class World:
    """The world at `path`, which need not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.workspace = path / "workspace"
        self.tracker = path / "tracker.sqlite"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep every other process out while the block runs. The directory is made (0700) if absent.

        Raises `WorldHeld`, which names the holder, at once; `WrongWorld` when there can't be a world at this path.
        """
        lock = self.path / "lock"
        try:
            _files.make_private(self.path)
            held = _files.take(lock)
        except OSError as error:
            raise WrongWorld(str(self.path), error.strerror or str(error)) from error
        if held is None:
            pids = (int(word) for word in _files.said(lock) if word.isdecimal())
            raise WorldHeld(str(self.path), next(pids, None))
        held.say(os.getpid())
        with closing(held):
            yield

    def lay(self, task: Task) -> None:
        """Unpack the task's workspace, unless it is there as it was unpacked; call it while the world is held.

        Raises `WrongWorld` when it holds anything else.
        """
        if not self.is_new(task):
            raise WrongWorld(str(self.path), "another run has worked in it, or it is none of this task's")
        if self.workspace.exists():
            return
        for rest in self.path.glob(".tmp-workspace-*"):  # of earlier deaths
            shutil.rmtree(rest)
        beside = Path(tempfile.mkdtemp(prefix=".tmp-workspace-", dir=self.path))
        task.unpack(beside / "workspace")
        for place in (beside / "workspace", *beside.rglob("*")):
            _files.sync(place)
        (beside / "workspace").rename(self.workspace)
        beside.rmdir()
        _files.sync(self.path)

    def is_new(self, task: Task) -> bool:
        """Whether nobody has worked in the workspace: it is absent, or as it was unpacked."""
        return not self.workspace.exists() or contents(self.workspace) == task.files

    def renew(self, task: Task) -> None:
        """Make sure that nobody has worked in it, and raise as `held`.

        A world that was used gets the first free name of `<name>.1`, `<name>.2`, …, so that a new one can be laid here.
        Its tracker notices and ends; its faults stay here too.
        """
        with self.held():
            if self.is_new(task):
                return
            others = (self.path.with_name(f"{self.path.name}.{number}") for number in itertools.count(1))
            faults = faults_of(self.path)
            self.path.rename(next(place for place in others if not place.exists()))
            set_faults(self.path, faults)
            _files.sync(self.path.parent)
