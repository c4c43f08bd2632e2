"""What a plugin counted: runs on a log, and how many of them came to the same when they ran again on it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

REPLAY = bool(os.environ.get("REFOLD_REPLAY"))
"""Whether each run that ended is run again on its log."""
RUNS = tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)  # noqa: S108 (0700)
"""Where the runs are: in memory where that is possible, for no machine loses its power here."""


@dataclass
class Counts:
    """The runs and replays of one session; `others` are those that were not the same: the reasons by the test.

    `apart` were on no log: sync code in a running loop, which must not be blocked.
    """

    runs: int = 0
    apart: int = 0
    replays: int = 0
    same: int = 0
    executed: int = 0
    others: dict[str, list[str]] = field(default_factory=dict)

    @contextlib.contextmanager
    def replaying(self) -> Iterator[None]:
        """One replay. What it raises is counted, and not raised: the test goes on with its first result."""
        self.replays += 1
        try:
            yield
        except BaseException as error:  # noqa: BLE001 (a signal is no Exception)
            self._note(f"raised {type(error).__name__}: {error}")

    def judge(self, first: Any, again: Any, executed: int) -> None:
        """Compare a replay with its run."""
        self.executed += executed
        if executed:
            self._note(f"executed {executed}")
        elif first != again:
            was, now = repr(first), repr(again)
            place = next((n for n, (a, b) in enumerate(zip(was, now, strict=False)) if a != b), min(len(was), len(now)))
            around = slice(max(place - 60, 0), place + 80)
            self._note(f"differs: {was[around]} and then {now[around]}")
        else:
            self.same += 1

    def _note(self, why: str) -> None:
        test, _, _phase = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")
        self.others.setdefault(test, []).append(why[:300])


COUNTS = Counts()
"""Those of this session."""


class Reads(dict[str, Any]):
    """What is declared: every tool reads. A test's tools raise what they like, and no person is there to settle it."""

    def get(self, _: object, __: object = None) -> Any:
        """The same for each."""
        return {"effect": "reads", "attempts": 1}
