"""Limits cover the whole life of a run: they are compared with the log's totals, never with the process's.

The model is asked only while the spend is below the limit, so a run exceeds it by one ask at most, and each of the
children that run side by side its share by one.
"""

from replay.events import RunStopped
from replay.messages import CostBound
from replay.state import Child, State
from replay.values import Limits
from runner.errors import BadAgent


def exceeded(used: State | Child, limits: Limits) -> RunStopped | None:
    """Why the next ask of a run, or of a child as its parent knows it, may not be sent under these limits, or None."""
    spent = used.spent
    if limits.turns is not None and used.turns_used >= limits.turns:
        return RunStopped(reason="TurnLimit", detail=f"{used.turns_used} of {limits.turns} turns used")
    if limits.tokens is not None and spent.tokens >= limits.tokens:
        return RunStopped(reason="TokenLimit", detail=f"{spent.tokens} of {limits.tokens} tokens used")
    if limits.dollars is not None and spent.total_dollars >= limits.dollars:
        lost = f", ${spent.lost_dollars:.4f} of it bounds of lost asks" if spent.lost_asks else ""
        return RunStopped(
            reason="DollarLimit", detail=f"${spent.total_dollars:.4f} of ${limits.dollars:.4f} spent{lost}"
        )
    return None


def priced(model: str, limits: Limits, bound: CostBound) -> None:
    """Raise `BadAgent` when there is a limit in dollars and nobody knows what an ask costs.

    Such an ask would count as free, so the limit would never be reached: it is refused, not ignored.
    """
    if limits.dollars is not None and bound.dollars is None:
        message = (
            f"there is a limit of ${limits.dollars:g}, and what {model} costs is unknown: give the model its prices, "
            "install the extra 'prices', or take the limit away"
        )
        raise BadAgent(message)
