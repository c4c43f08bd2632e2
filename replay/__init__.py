"""What a run's log means: its events, the state they add up to, and the fold that adds them up.

Pure: no clock, no disk, no tool, no randomness; time is an input that the log holds. The modules `events`, `messages`,
`state`, `stories` and `values` hold the types.

    state = replay.load(store.read(run).lines)     # the state of a run
    state = replay.step(state, event, at)                   # the state after one more event
    story = replay.audit(store.read(run).lines)    # what the run did, for people
"""

import importlib
from typing import TYPE_CHECKING, Any

from replay import events, messages, state, values
from replay._codec import decode, encode, tag
from replay._digest import of as digest
from replay._digest import of_value as digest_value
from replay._event import Event
from replay._fold import fold, load, step
from replay._fold_asks import with_queue
from replay._fork import Fork, effects, fork
from replay._frozen import FOLD_VERSION, dump, restore
from replay.errors import Diverged, IllegalEvent, NoSuchLine, NotFaithful, ReplayError, Undecodable
from replay.events import AnyEvent
from replay.state import NEW, CallState, Question, State

if TYPE_CHECKING:
    from replay import stories
    from replay._audit import Teller, audit
    from replay._divergence import Divergence, Drift, Retraced
    from replay._retrace import retrace
    from replay.stories import Audit, Finding
else:
    _LATER = {
        "replay._audit": ("Teller", "audit"),
        "replay._divergence": ("Divergence", "Drift", "Retraced"),
        "replay._retrace": ("retrace",),
        "replay.stories": ("Audit", "Finding"),
    }

    def __getattr__(name: str) -> Any:
        """What only looks back, at what a run did, is imported when it is named: no run needs it."""
        if name == "stories":
            return importlib.import_module("replay.stories")
        for module, names in _LATER.items():
            if name in names:
                return globals().setdefault(name, getattr(importlib.import_module(module), name))
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
