"""What an adapter of a framework uses: the run that its code belongs to, and the framework's tools and results as ours.

The framework's agent runs in a block of `runner.durable`. Wherever the framework asks its model or calls a tool, the
adapter asks `current()`, the run of that block, to do it: what is recorded is handed back, and the rest is done once
and recorded. `declared` makes a framework's tool known to the run; a body returns `Verbatim` where the framework wants
its own value back, and raises `Withdrawn` where it did nothing and will be called again.
"""

from runner._agent.call import Verbatim, Withdrawn
from runner._durable.demand import ControlSignal
from runner._durable.seam import Durable, current
from runner._durable.tools import Declarations, counts, declared

__all__ = [
    "ControlSignal",
    "Declarations",
    "Durable",
    "Verbatim",
    "Withdrawn",
    "counts",
    "current",
    "declared",
]
