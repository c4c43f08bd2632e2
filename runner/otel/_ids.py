"""The ids of spans, which every process makes alike, and the trace contexts that are saved with runs."""

import hashlib
import secrets
from contextvars import ContextVar
from typing import TYPE_CHECKING

from opentelemetry.trace import SpanContext, TraceFlags

from replay import State

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.id_generator import IdGenerator
else:
    IdGenerator = object  # at run time the API is enough

wanted: ContextVar[tuple[int, int] | None] = ContextVar("refold_span", default=None)
"""The ids of the span of ours that is being made."""


def made(size: int, *names: object) -> int:
    """An id of so many bytes, made of what it stands for."""
    return int.from_bytes(hashlib.sha256(" ".join(map(str, names)).encode()).digest()[:size], "big")


class Ids(IdGenerator):
    """Makes the ids of refold's spans from what they stand for, and random ones for all others.

    It is an `IdGenerator` for the SDK's `TracerProvider(id_generator=...)`. With it the lives of a run, in whatever
    process, are one trace, and each is linked to the life before. Without it each life is a trace of its own.
    """

    def generate_trace_id(self) -> int:
        """From the run's uid."""
        given = wanted.get()
        return given[0] if given is not None else secrets.randbits(128)

    def generate_span_id(self) -> int:
        """From the run's uid and the life, the request, or the call and its attempt."""
        given = wanted.get()
        return given[1] if given is not None else secrets.randbits(64)

    def is_trace_id_random(self) -> bool:
        """Whether a sampler may take the trace's id for a random number: a digest is as good as one."""
        return True


def written(here: SpanContext) -> str:
    """A span as its W3C trace context; "" where there is none."""
    return f"00-{here.trace_id:032x}-{here.span_id:016x}-{here.trace_flags:02x}" if here.is_valid else ""


def read(text: str) -> SpanContext | None:
    """A span of a W3C trace context, as it is saved with a run."""
    if not text:
        return None
    _, trace_id, span_id, flags = text.split("-")
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16)))


def life(state: State) -> tuple[int, int]:
    """The ids of a life: a child run is in the trace of its parent, every other one has a trace of its own."""
    above = read(state.trace) if state.parent_call is not None else None
    return above.trace_id if above is not None else made(16, state.uid), made(8, state.uid, "life", state.carried)


def before(state: State) -> list[SpanContext]:
    """What a life is linked to where all ids are made here: the life before, and of a fork its parent's first."""
    found = []
    if state.carried > 1:
        found.append((life(state)[0], made(8, state.uid, "life", state.carried - 1)))
    if state.forked_from not in ("", state.uid):  # no child run is forked, so its trace is its parent's own
        found.append((made(16, state.forked_from), made(8, state.forked_from, "life", 1)))
    return [SpanContext(*ids, is_remote=True, trace_flags=TraceFlags(1)) for ids in found]
