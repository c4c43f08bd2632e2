"""Programs with a loop of their own: a framework's agent, or plain Python, durable on a run's log.

`seam` is what they call, `pump` carries the run on, `cursor` hands back what is recorded, `program` is the agent of
such runs, and `opening` the block that begins one. Adapters use the names below.
"""

from runner._agent.call import Verbatim, Withdrawn
from runner._durable.opening import durable
from runner._durable.program import Program, durable_main
from runner._durable.seam import Durable, current
from runner._durable.signal import ControlSignal
from runner._durable.tools import Declarations, counts, declared

__all__ = [
    "ControlSignal",
    "Declarations",
    "Durable",
    "Program",
    "Verbatim",
    "Withdrawn",
    "counts",
    "current",
    "declared",
    "durable",
    "durable_main",
]
