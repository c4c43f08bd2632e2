"""Tools whose calls are left open, and the lookups that settle them: what the tests of the ladder share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import runner
import runner.testing
from tests.support import stage

ACT = [runner.testing.tool_calls(("act", {"x": 1})), "over"]
HOUR = timedelta(hours=1)
Looked = runner.Found | runner.Missing | runner.Unsure


class Once:
    """A tool whose first `lost` attempts have no reply, and a lookup that answers from a list (or raises)."""

    def __init__(
        self, lost: int, *answers: Looked | BaseException, visible_within: float = 0, attempts: int = 3
    ) -> None:
        self.tries = 0
        self.looks = 0

        @runner.tool(attempts=attempts)
        def act(x: int) -> str:
            self.tries += 1
            if self.tries <= lost:
                raise runner.OutcomeUnknown("no reply")
            return f"did {x}"

        if answers:

            @act.lookup(visible_within=visible_within)
            def find(_call: runner.Call) -> Looked:
                self.looks += 1
                answer = answers[min(self.looks, len(answers)) - 1]
                if isinstance(answer, BaseException):
                    raise answer
                return answer

        self.tool = act


class Killed(stage.Ticking):
    """A clock in whose first wait the process ends."""

    async def sleep(self, _seconds: float) -> None:
        """End it."""
        raise KeyboardInterrupt


def keyed(seen: list[str]) -> Callable[[int], str]:
    """A body without a reply."""

    def act(x: int) -> str:
        seen.append(f"{x}")
        raise runner.OutcomeUnknown("no reply")

    return act
