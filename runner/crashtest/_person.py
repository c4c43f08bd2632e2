"""The person: answers what a simulated run asks, by default from the truth.

*truth* looks, once everything on its way has landed, and says what is so. *wrong* says the opposite about effects.
*nobody* answers no question about an effect; somebody comes by later, from outside of the run, and answers truly.
All of them say yes to approvals.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Literal

import runner
from runner.crashtest._virtual import Stuck

if TYPE_CHECKING:
    from runner.crashtest._points import Points
    from runner.crashtest._stage import Stage

Manner = Literal["truth", "wrong", "nobody"]
HONEST: Final = "somebody who looks"
LIAR: Final = "somebody who is wrong"
_PATIENCE: Final = 100


class Person:
    """Whoever is asked in one life."""

    def __init__(self, stage: Stage, points: Points, manner: Manner) -> None:
        """Look at a stage."""
        self._stage, self._points, self._manner = stage, points, manner

    async def answer(self, question: runner.Question) -> runner.Answer | None:
        """The hook: a point before and after."""
        self._points.at(f"question {question.id}, before")
        if question.kind == "settle":
            self._stage.asked[question.id] = question.call
            if self._manner == "nobody":
                return None
            await self._stage.landed()
        answer = self.says(question)
        self._stage.answers += 1
        if self._stage.answers > _PATIENCE:
            raise Stuck(f"a person has answered {_PATIENCE} times, and is asked about {question.id}")
        self._points.at(f"question {question.id}, after")
        return answer

    def says(self, question: runner.Question) -> runner.Answer:
        """The answer, at once."""
        if question.kind == "approve":
            return runner.Answer("approve", HONEST)
        stage, call = self._stage, question.call
        happened = stage.acted[call] > 0
        if self._manner == "wrong":
            stage.lies[question.id] = call
            return runner.Answer("rerun", LIAR) if happened else runner.Answer("done", LIAR, "it happened")
        if not happened:
            return runner.Answer("rerun", HONEST)
        value = stage.values.get(call, "it happened")
        return runner.Answer("done", HONEST, value if isinstance(value, str) else json.dumps(value, default=str))
