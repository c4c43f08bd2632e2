"""The simulated person who answers a run's questions, by default truthfully.

*truth* waits until every late effect has happened, then says what is true. *wrong* says the opposite about effects.
*nobody* does not answer questions about effects; later somebody else answers them truthfully, from outside the run.
*refuses* is truthful and refuses every call that needs an approval; the others decide as the user's own hook, or else
approve every call.
"""

import json
from dataclasses import dataclass
from typing import Final

import runner
from runner.testing._history import RUN
from runner.testing._points import CrashPoints
from runner.testing._virtual import Stuck
from runner.testing._world import AnswerMode, World

INFORMED: Final = "somebody who looks"
MISTAKEN: Final = "somebody who is wrong"
_PATIENCE: Final = 400


@dataclass(frozen=True)
class Person:
    """Answers the questions of one process, knowing what happened in the world."""

    world: World
    points: CrashPoints

    @property
    def answer_mode(self) -> AnswerMode:
        """How they answer: whoever comes after nobody did, truthfully."""
        return "truth" if self.world.left else self.world.answer_mode

    async def answer(self, question: runner.Question) -> runner.Answer | None:
        world = self.world
        self.points.at(f"question {question.id}, before")
        if world.inputs.message and not world.sent:
            world.sent = True
            runner.send(RUN, world.inputs.message, INFORMED, runs=world.others())
        if question.kind == "settle":
            world.asked[question.id] = question.call
            if self.answer_mode == "nobody":
                return None
            await world.landed()
        answer = self.says(question)
        world.answers += 1
        if world.answers > _PATIENCE:
            raise Stuck(f"a person has answered {_PATIENCE} times, and is asked about {question.id}")
        self.points.at(f"question {question.id}, after")
        return answer

    def says(self, question: runner.Question) -> runner.Answer | None:
        if question.kind == "settle":
            return self.settles(question)
        if self.answer_mode == "refuses":
            self.world.refused.add(question.call)
            return runner.Answer("refuse", INFORMED)
        decide = self.world.inputs.decide
        return decide(question) if decide is not None else runner.Answer("approve", INFORMED)

    def settles(self, question: runner.Question) -> runner.Answer:
        call = question.call
        happened = self.world.acted[call] > 0
        if self.answer_mode == "wrong":
            self.world.wrong_answers[question.id] = call
            return runner.Answer("rerun", MISTAKEN) if happened else runner.Answer("done", MISTAKEN, "it happened")
        if not happened:
            return runner.Answer("rerun", INFORMED)
        value = self.world.values.get(call, "it happened")
        return runner.Answer("done", INFORMED, value if isinstance(value, str) else json.dumps(value, default=str))
