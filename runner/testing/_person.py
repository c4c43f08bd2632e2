"""The simulated person who answers a run's questions, by default truthfully.

*truth* waits until every late effect has happened, then says what is true. *wrong* says the opposite about effects.
*nobody* does not answer questions about effects; later somebody else answers them truthfully, from outside the run.
*refuses* is truthful and refuses every call that needs an approval; the others decide as the user's own hook, or else
approve every call.
"""

import json
from dataclasses import dataclass
from typing import Final, Literal

import runner
from runner.testing._environment import RUN, SimulatedEnvironment
from runner.testing._points import CrashPoints
from runner.testing._virtual import Stuck

AnswerMode = Literal["truth", "wrong", "nobody", "refuses"]
INFORMED: Final = "somebody who looks"
MISTAKEN: Final = "somebody who is wrong"
_PATIENCE: Final = 400


@dataclass(frozen=True)
class Person:
    """Answers the questions of one process, knowing what happened in the environment."""

    environment: SimulatedEnvironment
    points: CrashPoints
    answer_mode: AnswerMode

    async def answer(self, question: runner.Question) -> runner.Answer | None:
        self.points.at(f"question {question.id}, before")
        message = self.environment.inputs.message
        if message and not self.environment.sent:
            self.environment.sent = True
            runner.send(RUN, message, INFORMED, runs=self.environment.others())
        if question.kind == "settle":
            self.environment.asked[question.id] = question.call
            if self.answer_mode == "nobody":
                return None
            await self.environment.landed()
        answer = self.says(question)
        self.environment.answers += 1
        if self.environment.answers > _PATIENCE:
            raise Stuck(f"a person has answered {_PATIENCE} times, and is asked about {question.id}")
        self.points.at(f"question {question.id}, after")
        return answer

    def says(self, question: runner.Question) -> runner.Answer | None:
        if question.kind == "approve" and self.answer_mode == "refuses":
            self.environment.refused.add(question.call)
            return runner.Answer("refuse", INFORMED)
        if question.kind == "approve":
            decide = self.environment.inputs.decide
            return decide(question) if decide is not None else runner.Answer("approve", INFORMED)
        return self.settles(question)

    def settles(self, question: runner.Question) -> runner.Answer:
        environment, call = self.environment, question.call
        happened = environment.acted[call] > 0
        if self.answer_mode == "wrong":
            environment.wrong_answers[question.id] = call
            return runner.Answer("rerun", MISTAKEN) if happened else runner.Answer("done", MISTAKEN, "it happened")
        if not happened:
            return runner.Answer("rerun", INFORMED)
        value = environment.values.get(call, "it happened")
        return runner.Answer("done", INFORMED, value if isinstance(value, str) else json.dumps(value, default=str))
