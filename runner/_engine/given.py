"""What is given with a run, or to a worker: refused in a sentence before anything is made, where it can't work."""

from collections.abc import Mapping

from runner._agent import declaration
from runner._agent.agent import Agent
from runner._agent.declaration import Accepted, number
from runner._clock import Clock

GIVEN: Accepted = {
    "agent": (lambda v: isinstance(v, Agent), "a runner.Agent"),
    "agents": (lambda v: declaration.several(v, Agent), "a list of agents"),
    "task": (lambda v: isinstance(v, str), "text"),
    "labels": (
        lambda v: v is None or (isinstance(v, Mapping) and declaration.several([*v, *v.values()], str)),
        'a dictionary of texts, such as {"tenant": "acme"}',
    ),
    "on_question": (lambda v: v is None or callable(v), "a function of a question"),
    "watch": (lambda v: v is None or callable(v), "a function of a state and events"),
    "clock": (lambda v: v is None or isinstance(v, Clock), "a runner.Clock"),
    "grace": (lambda v: number(v, 0), "a number of seconds from 0"),
    "at_once": (lambda v: number(v, 1) and isinstance(v, int), "a whole number from 1"),
}


def check(**given: object) -> None:
    """Raise `BadAgent` for a value that can't work."""
    declaration.check(GIVEN, given)
