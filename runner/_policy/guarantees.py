"""What happens to a call when the process dies in it, said before it happens.

The words are the ladder's own (`ladder.RUNGS`): the table that settles a call in doubt is the table that is described
here, so a guarantee can't promise what the code does not do. They hold as long as later lives run code that declares
the same (else a person decides), the service works as declared, and the tool does not raise `NeedsPerson`, which is a
question of the service's own.
"""

import itertools
from dataclasses import dataclass

from replay.values import Effect
from runner._agent.agent import AnyAgent
from runner._agent.agent_tool import AgentTool, check
from runner._agent.tools import Tool
from runner._policy import ladder


@dataclass(frozen=True)
class Guarantee:
    """What is promised of one tool of an agent; as text, one line.

    words       what happens if the process dies in a call, rung by rung
    may_ask     whether a person may have to decide: the ladder's last rung, or a yes that the tool needs first
    may_repeat  whether its effect may come about more than once
    approval    whether some calls need a yes before they run
    once_per    the arguments of which a second call is refused: in the run, in those that continue it, in its forks
    parallel    whether its calls may run beside others, each settled for itself
    acts_on     seconds after the end of a lost lease in which an attempt may still act; None where there are no leases.
                One that sends through `runner.web` or `mcp`, or asks `call.holding()` directly before, does not
    """

    tool: str
    effect: Effect
    words: str
    may_ask: bool
    may_repeat: bool
    approval: bool
    once_per: tuple[str, ...] = ()
    parallel: bool = False
    acts_on: float | None = None

    def __str__(self) -> str:
        first = "needs a yes first; " if self.approval else ""
        ask, repeat = ("yes" if may else "no" for may in (self.may_ask, self.may_repeat))
        once = (
            f"; once per {', '.join(self.once_per)} in this run, its continuations and forks" if self.once_per else ""
        )
        beside = "; beside others, each settled for itself" if self.parallel else ""
        after = f"; unchecked, it may act {ladder.span(self.acts_on)} after a lost lease" if self.acts_on else ""
        return f"{first}{self.words}{once}{beside}{after}; may ask: {ask}; may repeat: {repeat}"


def guarantees(agent: AnyAgent, *, lease: float | None = None) -> tuple[Guarantee, ...]:
    """One guarantee for each tool of the agent, in their order, after those that declare nothing. Nothing is run.

    Args:
        agent: The agent.
        lease: The store's, if the runs are in a database.

    Raises:
        BadAgent: It is no agent.
    """
    check(agent=agent)
    first = sorted(agent.tools, key=lambda tool: not tool.undeclared)
    return tuple(_guarantee(tool, asks=agent.approve == "ask", lease=lease) for tool in first)


def _guarantee(tool: Tool, *, asks: bool, lease: float | None) -> Guarantee:
    approval = asks and tool.approval is not False
    if isinstance(tool, AgentTool):
        inner = guarantees(tool.agent, lease=lease)
        longest = max((one.acts_on or 0.0 for one in inner), default=0.0)
        calls = ", ".join(f"{one.tool} {one.words}" for one in inner) or "none"
        words = f"its child run goes on, and is never begun twice; its own calls: {calls}"
        may_ask, may_repeat = any(one.may_ask for one in inner), any(one.may_repeat for one in inner)
    else:
        rungs = ladder.reachable_rungs(tool)
        words = _sentence([rung.description(tool) for rung in rungs])
        words = f"nobody declared what a repeat does; {words}" if tool.undeclared else words
        may_ask, may_repeat = ladder.PERSON in rungs, any(rung.repeats(tool) for rung in rungs)
        longest = tool.timeout if tool.effect != "reads" else 0.0
    may_ask = may_ask or approval
    parts = (tool.name, tool.effect, words, may_ask, may_repeat, approval, tool.once_per, tool.parallel)
    return Guarantee(*parts, acts_on=None if lease is None else longest)


def _sentence(steps: list[str]) -> str:
    """The steps one after another; a verb that the step before had is not said again."""
    said = steps[:1]
    for before, step in itertools.pairwise(steps):
        verb, _, rest = step.partition(" ")
        said.append(rest if before.startswith(f"{verb} ") else step)
    return ", then ".join(said)
