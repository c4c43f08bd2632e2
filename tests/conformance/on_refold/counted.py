"""What a plugin counted: runs on a log, and how many of them came to the same when they ran again on it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Counts:
    """The runs and replays of one session; `others` are those that were not the same, with the test and the reason.

    `apart` were on no log: sync code in a running loop, which must not be blocked.
    """

    runs: int = 0
    apart: int = 0
    replays: int = 0
    same: int = 0
    executed: int = 0
    others: list[str] = field(default_factory=list)

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
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rsplit("/", maxsplit=1)[-1].partition(" ")[0]
        self.others.append(f"{test} {why[:300]}")

    def lines(self) -> list[str]:
        """The figures, then what was not the same."""
        begun = f"{self.runs} runs, {self.apart} apart"
        figures = f"{begun}, {self.replays} replays, {self.same} the same, {self.executed} executed"
        return [f"refold: {figures}", *(f"refold other: {one}" for one in self.others)]
