"""The pure half of a fork: what the new run begins with, and which effects of its parent it must not repeat.

A fork begins with the state at its line, without the decisions of that line: what had come back is known, what was
about to happen is decided again. Whatever the parent did after the line has already taken effect, and the fork's
model does not know it: it may well order the same payment again. These effects are the *fork guard*. Reads are no
effects. A call that certainly did nothing is left out. One that may have acted, and is not in doubt in the fork
itself, is in it as not known to have happened.

The files are those of the line too: a path that the parent wrote only later had the content that its first write found.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from replay import _codec
from replay import events as e
from replay._fold import Line, fold, load, step
from replay.errors import NoSuchLine
from replay.messages import HAPPENED
from replay.state import NEW, CallState, State
from replay.values import ParentEffect, Queued

_SAID, _MESSAGES = 200, 1_000
"""Characters of the beginning of a message, and how many messages, the newest, that a fork is told."""
MAX_TEXT = 2_000_000
"""Characters of results in one fork guard: its event is one line, which has a limit."""


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """What a fork is made of.

    Attributes:
        keep: How many events of the last shared line it takes.
        event: Its own first event.
        state: Its state after that event.
        files: The contents that each file of its workspace may have (SHA-256 in hex, None for no such file).
        parent: The state of the parent at its last line.
    """

    keep: int
    event: e.RunForked
    state: State
    files: dict[str, tuple[str | None, ...]]
    parent: State


def fork(
    lines: Sequence[Line],
    seq: int,
    *,
    run: str,
    uid: str = "",
    at: datetime,
    host: str,
    pid: int,
    others: Iterable[ParentEffect] = (),
) -> Fork:
    """Forks a history at one of its lines.

    Args:
        lines: The whole history.
        seq: The last line that the fork shares.
        uid: The new run's identity.
        run: The fork's id.
        at: The time of the fork (UTC).
        host: The host that makes it.
        pid: The process that makes it.
        others: Effects of other forks of the same history, which it must not repeat either.

    Raises:
        NoSuchLine: The history has no such line, or the run had not begun there.
        IllegalEvent, Undecodable: The history can't be folded.
    """
    later = [line for line in lines if line.seq >= seq]
    keep, shared = 0, NEW
    if later and later[0].seq == seq:
        keep, shared = _outcomes(load([line for line in lines if line.seq < seq]), later[0])
    if shared.phase == "new":
        raise NoSuchLine(load(lines).run, seq, lines[-1].seq if lines else -1)
    after = _After(shared)
    after.add(later[0], keep)
    for line in later[1:]:
        after.add(line)
    fork_guard = _bounded(dict.fromkeys([*after.fork_guard(), *others]))
    event = e.RunForked(
        run=run,
        uid=uid,
        parent=after.state.run,
        seq=seq,
        host=host,
        pid=pid,
        fork_guard=fork_guard,
        messages=tuple(after.messages[-_MESSAGES:]),
    )
    state = replace(step(shared, event, at), seq=seq + 1, life=shared.life + 1, at=at)
    return Fork(keep=keep, event=event, state=state, files={**after.files, **shared.files}, parent=after.state)


def effects(lines: Sequence[Line], seq: int) -> list[ParentEffect]:
    """What a history did after its line `seq`: the results of every call that may have changed something.

    Raises:
        IllegalEvent, Undecodable: The history can't be folded.
    """
    after = _After(load([line for line in lines if line.seq <= seq]))
    for line in lines:
        if line.seq > seq:
            after.add(line)
    return after.fork_guard()


def _outcomes(before: State, line: Line) -> tuple[int, State]:
    """How many events of a line came before its first decision, and the state after these."""
    events = [_codec.decode(raw, seq=line.seq) for raw in line.events]
    keep = next((i for i, event in enumerate(events) if event.is_decision), len(events))
    state = fold(before, line.at, events[:keep], seq=line.seq)
    return keep, replace(state, seq=line.seq, life=line.life, at=line.at)


class _After:
    """Collects what the parent did after the line."""

    def __init__(self, shared: State) -> None:
        self.state = shared
        self.files: dict[str, tuple[str | None, ...]] = {}
        self.messages: list[Queued] = []
        self._in_doubt = set(shared.in_doubt)
        self._found: list[ParentEffect] = []

    def add(self, line: Line, first: int = 0) -> None:
        """Adds a line, from one of its events on."""
        for raw in line.events[first:]:
            event, before = _codec.decode(raw, seq=line.seq), self.state
            self.state = step(before, event, line.at, seq=line.seq)
            self._event(event, before)
        self.state = replace(self.state, seq=line.seq, life=line.life, at=line.at)

    def _event(self, event: e.AnyEvent, before: State) -> None:
        if isinstance(event, e.RunForked):  # a fork of a fork, from before the first: what its parent did stays known
            self._found += event.fork_guard
            self.messages += event.messages
        if isinstance(event, e.MessageReceived):
            text = event.text if len(event.text) <= _SAID else f"{event.text[:_SAID]}..."
            self.messages.append(Queued(id=event.id, who=event.who, text=text))
        if isinstance(event, e.FileIntended):
            self.files.setdefault(event.path, (event.before,))
        if isinstance(event, e.ResultRecorded) and event.how in HAPPENED:
            call = before.find(event.call)
            if call is not None and _acts(call):
                self._found.append(_effect(call, before.run, event.text))

    def fork_guard(self) -> list[ParentEffect]:
        """Every effect in the order in which they became known; last those of which nobody knows."""
        unknown = [c for c in self.state.calls if c.in_doubt and _acts(c) and c.call.id not in self._in_doubt]
        return [*self._found, *(_effect(c, self.state.run, None) for c in unknown)]


def _acts(call: CallState) -> bool:
    """Whether an attempt of this call could change something."""
    return any(attempt.effect != "reads" for attempt in call.attempts)


def _effect(call: CallState, run: str, text: str | None) -> ParentEffect:
    return ParentEffect(
        tool=call.call.tool,
        intent=call.attempts[-1].intent,
        arguments=call.arguments,
        call=call.call.id,
        text=text or "",
        run=run,
        happened=text is not None,
        written=call.call.arguments,
    )


def _bounded(fork_guard: Iterable[ParentEffect]) -> tuple[ParentEffect, ...]:
    """The fork guard, with long results cut if all of them would not fit into one line; a cut one says so."""
    held = tuple(fork_guard)
    if sum(len(one.text) for one in held) <= MAX_TEXT:
        return held
    most = MAX_TEXT // len(held)
    return tuple(
        replace(f, text=f"{f.text[:most]} ... (cut; run {f.run} holds the whole)") if len(f.text) > most else f
        for f in held
    )
