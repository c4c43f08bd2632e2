"""Limits cover the whole life of a run: they are held against the log's totals, never the process's (spec row 3).

The agent asks only while its spend is below the limit, so it overshoots by one ask at most.
"""

from __future__ import annotations

from replay import Bound, Limits, RunStopped, State
from runner.errors import BadAgent


def exceeded(state: State, limits: Limits) -> RunStopped | None:
    """Why the next ask may not be sent under these limits, or None."""
    spent = state.spent
    if limits.turns is not None and state.turns >= limits.turns:
        return RunStopped(reason="TurnLimit", detail=f"{state.turns} of {limits.turns} turns used")
    if limits.tokens is not None and spent.tokens >= limits.tokens:
        return RunStopped(reason="TokenLimit", detail=f"{spent.tokens} of {limits.tokens} tokens used")
    if limits.dollars is not None and spent.total_dollars >= limits.dollars:
        lost = f", ${spent.lost_dollars:.4f} of it bounds of lost asks" if spent.lost_asks else ""
        return RunStopped(
            reason="DollarLimit", detail=f"${spent.total_dollars:.4f} of ${limits.dollars:.4f} spent{lost}"
        )
    return None


def priced(model: str, limits: Limits, bound: Bound) -> None:
    """Raise `BadAgent` when there is a limit in dollars and nobody knows what an ask costs.

    Such an ask would count as free, so the limit would never be reached: it is refused, not ignored (spec row 3).
    """
    if limits.dollars is not None and bound.dollars is None:
        message = (
            f"there is a limit of ${limits.dollars:g}, and what {model} costs is unknown: give the model its prices, "
            "install the extra 'prices', or take the limit away"
        )
        raise BadAgent(message)
