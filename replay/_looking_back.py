"""What looks back at what a run did: its story, its comparison with today's decisions, its forks."""

from replay import stories
from replay._audit import Teller, audit
from replay._fork import Fork, effects, fork
from replay._retrace import Divergence, Drift, Retraced, retrace
from replay.stories import Audit, Finding

__all__ = [
    "Audit",
    "Divergence",
    "Drift",
    "Finding",
    "Fork",
    "Retraced",
    "Teller",
    "audit",
    "effects",
    "fork",
    "retrace",
    "stories",
]
