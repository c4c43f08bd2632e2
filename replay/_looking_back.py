"""What looks back at what a run did: its story, its comparison with today's decisions, its forks."""

from replay import stories  # noqa: F401 (each of these is handed on by `replay`)
from replay._audit import Teller, audit  # noqa: F401
from replay._fork import Fork, effects, fork  # noqa: F401
from replay._retrace import Divergence, Drift, Retraced, retrace  # noqa: F401
from replay.stories import Audit, Finding  # noqa: F401
