"""The simulated person who answers a run's questions, by default truthfully.

*truth* waits until every late effect has happened, then says what is true. *wrong* says the opposite about effects.
*nobody* does not answer questions about effects; later somebody else answers them truthfully, from outside the run.
*refuses* is truthful and refuses every call that needs an approval; the others decide as the user's own hook, or else
approve every call.
"""

import json
from typing import Final, Literal

import runner
from runner.testing._environment import RUN, SimulatedEnvironment
from runner.testing._points import CrashPoints
from runner.testing._virtual import Stuck

AnswerMode = Literal["truth", "wrong", "nobody", "refuses"]
INFORMED: Final = "somebody who looks"
MISTAKEN: Final = "somebody who is wrong"
_PATIENCE: Final = 400


class Person:
    """Answers the questions of one process."""

    def __init__(self, environment: SimulatedEnvironment, points: CrashPoints, answer_mode: AnswerMode) -> None:
        """Answer in one process, knowing what happened in the environment."""
        self._environment, self._points, self._answer_mode = environment, points, answer_mode

    async def answer(self, question: runner.Question) -> runner.Answer | None:
        """The hook: a point before and after."""
        self._points.at(f"question {question.id}, before")
        message = self._environment.inputs.message
        if message and not self._environment.sent:
            self._environment.sent = True
            runner.send(RUN, message, INFORMED, runs=self._environment.others())
        if question.kind == "settle":
            self._environment.asked[question.id] = question.call
            if self._answer_mode == "nobody":
                return None
            await self._environment.landed()
        answer = self.says(question)
        self._environment.answers += 1
        if self._environment.answers > _PATIENCE:
            raise Stuck(f"a person has answered {_PATIENCE} times, and is asked about {question.id}")
        self._points.at(f"question {question.id}, after")
        return answer

    def says(self, question: runner.Question) -> runner.Answer | None:
        """The answer, at once."""
        if question.kind == "approve" and self._answer_mode == "refuses":
            self._environment.refused.add(question.call)
            return runner.Answer("refuse", INFORMED)
        if question.kind == "approve":
            decide = self._environment.inputs.decide
            return decide(question) if decide is not None else runner.Answer("approve", INFORMED)
        return self.settles(question)

    def settles(self, question: runner.Question) -> runner.Answer:
        """The answer about a call in doubt."""
        environment, call = self._environment, question.call
        happened = environment.acted[call] > 0
        if self._answer_mode == "wrong":
            environment.wrong_answers[question.id] = call
            return runner.Answer("rerun", MISTAKEN) if happened else runner.Answer("done", MISTAKEN, "it happened")
        if not happened:
            return runner.Answer("rerun", INFORMED)
        value = environment.values.get(call, "it happened")
        return runner.Answer("done", INFORMED, value if isinstance(value, str) else json.dumps(value, default=str))
