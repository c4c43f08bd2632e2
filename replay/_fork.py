"""The pure half of a fork: what another run begins with, and what of its parent it must not do again.

A fork's state is the line it forks at with the outcomes folded and the intents dropped: what had come back there is
known, what was about to happen is decided anew. What the parent did behind that is in the world all the same, and the
fork's model does not know it: after a rewind it may well order the same payment again. So those effects make the
*fence*. Reads are no effects. A call that certainly did nothing is left out; one that may have acted, and that the fork
does not itself hold as open, is in it as not known to have happened.

The files are those of that line too: a path that the parent wrote only later had then the content that its first write
found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from replay import _codec
from replay import _events as e
from replay._fold import Line, load, step
from replay._messages import HAPPENED
from replay._retrace import is_decision
from replay._state import NEW, CallState, State
from replay._values import Fenced
from replay.errors import NoSuchLine

ROOM = 2_000_000
"""Characters of results that one fence holds: its event is one line, which has a limit."""


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """What a fork is made of.

    `keep` is how many events of the parent's last shared line it takes, `event` its own first event, `state` where it
    then stands, `files` the contents that its workspace may have. `parent` is where the parent's history ends.
    """

    keep: int
    event: e.RunForked
    state: State
    files: dict[str, tuple[str | None, ...]]
    parent: State


def fork(
    lines: Sequence[Line], seq: int, *, run: str, at: datetime, host: str, pid: int, others: Iterable[Fenced] = ()
) -> Fork:
    """The run `run`, forked at `at` from a whole history at its line `seq`. `others` join its fence.

    Raises `NoSuchLine` when the history has no such line or is not begun there, `IllegalEvent` and `Undecodable` when
    it can't be folded.
    """
    shared = _before(lines, seq)
    if shared.phase == "new":
        raise NoSuchLine(load(lines).run, seq, lines[-1].seq if lines else -1)
    keep, behind = 0, _Behind(shared)
    for line in lines:
        if line.seq < seq:
            continue
        events = [_codec.decode(raw, seq=line.seq) for raw in line.events]
        if line.seq == seq:
            keep = _outcomes(events)
        for event in events[keep if line.seq == seq else 0 :]:
            behind.tell(event, line.at, line.seq)
        behind.state = replace(behind.state, seq=line.seq, life=line.life, at=line.at)
    fence = _bounded(dict.fromkeys([*behind.fence(), *others]))
    event = e.RunForked(run=run, parent=behind.state.run, seq=seq, host=host, pid=pid, fence=fence)
    state = replace(step(shared, event, at), seq=seq + 1, life=shared.life + 1, at=at)
    return Fork(keep=keep, event=event, state=state, files={**behind.files, **shared.files}, parent=behind.state)


def effects(lines: Sequence[Line], seq: int) -> list[Fenced]:
    """What a history did behind its line `seq`, all of which is folded: the results of what may have changed something.

    Raises as `fork` does.
    """
    behind = _Behind(load([line for line in lines if line.seq <= seq]))
    for line in lines:
        for raw in line.events if line.seq > seq else ():
            behind.tell(_codec.decode(raw, seq=line.seq), line.at, line.seq)
    return behind.fence()


def _outcomes(events: Sequence[e.Any]) -> int:
    """How many events of a line came before the first decision."""
    return next((i for i, event in enumerate(events) if is_decision(event)), len(events))


def _before(lines: Sequence[Line], seq: int) -> State:
    """The state at line `seq`: its outcomes folded, its intents dropped. Phase `new` where there is no such line."""
    state = NEW
    for line in lines:
        events = [_codec.decode(raw, seq=line.seq) for raw in line.events]
        for event in events[: _outcomes(events) if line.seq == seq else len(events)]:
            state = step(state, event, line.at, seq=line.seq)
        state = replace(state, seq=line.seq, life=line.life, at=line.at)
        if line.seq == seq:
            return state
    return NEW


class _Behind:
    """What the parent did behind the line: told event by event."""

    def __init__(self, shared: State) -> None:
        self.state = shared
        self.files: dict[str, tuple[str | None, ...]] = {}
        self._open = set(shared.open)
        self._found: list[Fenced] = []

    def tell(self, event: e.Any, at: datetime, seq: int) -> None:
        """One more event."""
        before, self.state = self.state, step(self.state, event, at, seq=seq)
        if isinstance(event, e.RunForked):  # the fork of a fork, from before the first: its parent's effects stay known
            self._found += event.fence
        if isinstance(event, e.FileIntended):
            self.files.setdefault(event.path, (event.before,))
        if isinstance(event, e.ResultRecorded) and event.how in HAPPENED:
            call = before.find(event.call)
            if call is not None and _acts(call):
                self._found.append(_fenced(call, before.run, event.text))

    def fence(self) -> list[Fenced]:
        """Every effect, in the order in which they became known; those of which nobody knows last."""
        unknown = [c for c in self.state.calls if c.open and _acts(c) and c.call.id not in self._open]
        return [*self._found, *(_fenced(c, self.state.run, None) for c in unknown)]


def _acts(call: CallState) -> bool:
    """Whether an attempt of this call could change something."""
    return any(attempt.effect != "reads" for attempt in call.attempts)


def _fenced(call: CallState, run: str, text: str | None) -> Fenced:
    return Fenced(
        tool=call.call.tool,
        intent=call.attempts[-1].intent,
        arguments=call.call.arguments,
        call=call.call.id,
        text=text or "",
        run=run,
        happened=text is not None,
    )


def _bounded(fence: Iterable[Fenced]) -> tuple[Fenced, ...]:
    """The fence with long results cut where all of them would not fit in one line; a cut one says so."""
    held = tuple(fence)
    if sum(len(one.text) for one in held) <= ROOM:
        return held
    most = ROOM // len(held)
    return tuple(
        replace(f, text=f"{f.text[:most]} ... (cut; run {f.run} holds the whole)") if len(f.text) > most else f
        for f in held
    )
