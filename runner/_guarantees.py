"""What happens to a call when the process dies in it, said before it happens.

The words are the ladder's own (`_ladder.RUNGS`): the table that settles an open call is the table that is read aloud
here, so a guarantee can't promise what the code does not do. They hold as long as later lives run code that declares
the same (else a person decides), the service keeps its word, and the tool does not raise `NeedsPerson`, which is a
service's own question.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from replay import Effect
from runner import _ladder
from runner._agent import Agent
from runner._tools import Tool


@dataclass(frozen=True)
class Guarantee:
    """What is promised of one tool of an agent; as text, one line.

    words       what happens if the process dies in a call, rung by rung (spec row 23)
    may_ask     whether a person may have to decide: the ladder's last rung, or a yes that the tool needs first
    may_repeat  whether its effect may come about more than once
    approval    whether some calls need a yes before they run (row 25)
    """

    tool: str
    effect: Effect
    words: str
    may_ask: bool
    may_repeat: bool
    approval: bool

    def __str__(self) -> str:
        first = "needs a yes first; " if self.approval else ""
        ask, repeat = ("yes" if may else "no" for may in (self.may_ask, self.may_repeat))
        return f"{first}{self.words}; may ask: {ask}; may repeat: {repeat}"


def guarantees(agent: Agent) -> tuple[Guarantee, ...]:
    """One guarantee for each tool of the agent, in their order. Nothing is run."""
    return tuple(_guarantee(tool, asks=agent.approve == "ask") for tool in agent.tools)


def _guarantee(tool: Tool, *, asks: bool) -> Guarantee:
    rungs = _ladder.ahead(tool)
    approval = asks and tool.approval is not False
    return Guarantee(
        tool=tool.name,
        effect=tool.effect,
        words=_sentence([rung.words(tool) for rung in rungs]),
        may_ask=approval or _ladder.PERSON in rungs,
        may_repeat=any(rung.repeats(tool) for rung in rungs),
        approval=approval,
    )


def _sentence(steps: list[str]) -> str:
    """The steps one after another; a verb that the step before had is not said again."""
    said = steps[:1]
    for before, step in itertools.pairwise(steps):
        verb, _, rest = step.partition(" ")
        said.append(rest if before.startswith(f"{verb} ") else step)
    return ", then ".join(said)
