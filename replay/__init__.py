"""What a run's log means: its events, the state they add up to, and the fold that adds them up.

Pure: no clock, no disk, no tool, no randomness; time is an input that the log holds. The modules `events`, `messages`,
`state`, `stories` and `values` hold the types.

    state = replay.load(store.read(run).lines)     # the state of a run
    state = replay.step(state, event, at)                   # the state after one more event
    story = replay.audit(store.read(run).lines)    # what the run did, for people
"""

from typing import TYPE_CHECKING, Any

from replay import events, messages, state, values
from replay._codec import FOLD_VERSION, decode, digest, digest_value, dump, encode, restore, tag
from replay._event import Event
from replay._fold import fold, load, step
from replay._fold_asks import with_queue
from replay.errors import Diverged, IllegalEvent, NoSuchLine, NotFaithful, ReplayError, Undecodable
from replay.events import AnyEvent
from replay.state import NEW, CallState, Question, State

if TYPE_CHECKING:
    from replay import stories
    from replay._audit import Teller, audit
    from replay._fork import Fork, effects, fork
    from replay._retrace import Divergence, Drift, Retraced, retrace
    from replay.stories import Audit, Finding
else:

    def __getattr__(name: str) -> Any:
        """What only looks back at a run is imported when it is named: no run needs it."""
        if name in __all__:
            import replay._looking_back as later  # noqa: PLC0415 (see above)

            return globals().setdefault(name, getattr(later, name))
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "FOLD_VERSION",
    "NEW",
    "AnyEvent",
    "Audit",
    "CallState",
    "Diverged",
    "Divergence",
    "Drift",
    "Event",
    "Finding",
    "Fork",
    "IllegalEvent",
    "NoSuchLine",
    "NotFaithful",
    "Question",
    "ReplayError",
    "Retraced",
    "State",
    "Teller",
    "Undecodable",
    "audit",
    "decode",
    "digest",
    "digest_value",
    "dump",
    "effects",
    "encode",
    "events",
    "fold",
    "fork",
    "load",
    "messages",
    "restore",
    "retrace",
    "state",
    "step",
    "stories",
    "tag",
    "values",
    "with_queue",
]
