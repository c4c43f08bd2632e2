"""What the log of a program's run hands back when the program runs again from the top.

1. What is recorded may be taken in any order, by what it is: a request by the digest of its messages, calls by their
   tools and arguments, a step by its branch, name and number. Tasks side by side come in another order each time.
2. Before anything new begins, everything recorded must have been taken or passed over, for which it waits a second:
   else the program goes another way.
3. A request that failed is handed back as a failure if its own life went on after it. The last one of a life that ended
   is asked again.
4. A request whose messages are those of a later one passes over what lies between: its framework remembers that by
   itself, or another task comes to it later. One whose messages go on from those of the last one is new, for the first
   of these reasons.
"""

import builtins
import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import msgspec

import eventlog
import replay
from replay.events import (
    CallsMade,
    ModelAsked,
    ModelFailed,
    PhaseChanged,
    ReplySaved,
    ResultRecorded,
    RunForked,
    RunResumed,
    StepRecorded,
)
from replay.messages import Reply, ToolCall
from runner.errors import ModelError

What = str | tuple[tuple[str, str, str], ...]
"""What is asked for: the digest of a request's messages, or calls with tool, arguments and the provider's id."""


def ordered(calls: Sequence[ToolCall]) -> What:
    """Calls that a program makes by itself, as they are recognised."""
    return tuple((call.tool, call.arguments, call.provider_id) for call in calls)


class Turn(msgspec.Struct):
    """One thing that a program did after another: a request with its reply or failure, or calls of its own.

    `taken`: the program has come there in this life. `served` are the calls that it has asked for.
    """

    seq: int
    what: What
    calls: tuple[ToolCall, ...] = ()
    reply: Reply | None = None
    failed: ModelFailed | None = None
    taken: bool = False
    results: dict[str, ResultRecorded] = {}
    served: set[str] = set()

    @property
    def is_act(self) -> bool:
        """Whether a program made this call by itself, maybe beside a framework whose calls are those of a reply."""
        return self.reply is None and [call.provider_id for call in self.calls] == [""]

    def __str__(self) -> str:
        if isinstance(self.what, str):
            return "a request to the model"
        return f"a call of {', '.join(f'{tool} with {arguments}' for tool, arguments, _ in self.what)}"


class Cursor:
    """The turns and steps of a run, and how far its program has come. `done` once the log holds the end."""

    def __init__(self, lines: Iterable[eventlog.Line] = ()) -> None:
        self.turns: list[Turn] = []
        self.done = False
        self.seq = 0
        self.asked = ""
        self._steps: dict[tuple[str, str, int], StepRecorded] = {}
        self._numbers: Counter[tuple[str, str]] = Counter()
        self._passed: dict[int, Turn] = {}
        self._late: list[int] = []
        self._here = -1
        self._first = 0
        for line in lines:
            for raw in line.events:
                self.add(replay.decode(raw, seq=line.seq), line.seq)
        if not self.done:
            self._drop_failed()

    def add(self, event: Any, seq: int, *, taken: bool = False) -> None:
        """Add what was saved. `taken`: this life's own."""
        self.seq = seq
        match event:
            case ModelAsked():
                self.asked = event.digests.messages
            case ReplySaved():
                self._append(Turn(seq, self.asked, event.reply.calls, reply=event.reply, taken=taken))
            case ModelFailed():
                self._append(Turn(seq, self.asked, failed=event, taken=taken))
            case CallsMade():
                self._append(Turn(seq, ordered(event.calls), event.calls, taken=taken))
            case ResultRecorded():
                self.turns[-1].results[event.call] = event
            case StepRecorded():
                self._steps[event.branch, event.name, event.n] = event
                if not (event.raw or event.error):
                    del self._steps[event.branch, event.name, event.n]
            case RunResumed() | RunForked():
                self._drop_failed()
            case PhaseChanged(phase="done"):
                self.done = True

    def _append(self, turn: Turn) -> None:
        self.turns.append(turn)
        if turn.taken:
            self._be_at(len(self.turns) - 1)

    def _drop_failed(self) -> None:
        while self.turns and self.turns[-1].failed is not None and not self.turns[-1].taken:
            self.turns.pop()

    @property
    def left(self) -> Turn | None:
        """The first recorded turn that the program has neither come to nor passed over."""
        while self._first < len(self.turns) and (self.turns[self._first].taken or self._first in self._passed):
            self._first += 1
        return self.turns[self._first] if self._first < len(self.turns) else None

    def take(self, what: What) -> Turn | None:
        """The first recorded turn like this that was not taken; one that was passed over only if no other is."""
        if self.left is not None:
            for place, turn in enumerate(self.turns[self._first :], self._first):
                if turn.what == what and not turn.taken and place not in self._passed:
                    self._come_to(place, skipping=isinstance(what, str))
                    return turn
        late = next((place for place, turn in self._passed.items() if turn.what == what), None)
        if late is None:
            return None
        self._late.append(late)
        turn = self._passed.pop(late)
        turn.taken = True
        return turn

    def pass_over(self, end: int | None = None) -> None:
        """Miss nothing of what is recorded before this place, or at all: what the program asks for is handed back."""
        for place, turn in enumerate(self.turns[self._first : end], self._first):
            if not turn.taken:
                self._passed.setdefault(place, turn)

    def _come_to(self, place: int, *, skipping: bool) -> None:
        if skipping:
            self.pass_over(place)
        self.turns[place].taken = True
        self._be_at(place)

    def _be_at(self, place: int) -> None:
        if not self.turns[place].is_act:
            self._here = max(self._here, place)

    def reach(self, what: What, ids: Collection[str]) -> bool:
        """Come to the reply that orders calls of these ids, if one from here on does. Whether what it says is here."""
        if self._here >= 0 and self.turns[self._here].what == what:
            return True
        place = next((place for place, call in self._ahead() if call.provider_id and call.provider_id in ids), None)
        if place is not None:
            self._come_to(place, skipping=True)
        return False

    def step(self, branch: str, name: str) -> tuple[int, StepRecorded | None]:
        """The number of the branch's next step of this name, and what it came to, if that is recorded."""
        n = self._numbers[branch, name]
        self._numbers[branch, name] += 1
        return n, self._steps.get((branch, name, n))

    def went_on(self, branch: str, name: str, n: int) -> bool:
        """Whether a later step of this name is recorded: the branch went on after one that was cancelled."""
        return any(one[:2] == (branch, name) and one[2] > n for one in self._steps)

    def _from_here(self) -> Iterator[int]:
        """The current turn, later ones, where a framework with a memory of its own begins, and those that came late."""
        yield from range(max(self._here, 0), len(self.turns))
        yield from self._late

    def _ahead(self) -> Iterator[tuple[int, ToolCall]]:
        for place in self._from_here():
            for call in self.turns[place].calls:
                yield place, call

    def find(self, provider_id: str, name: str) -> tuple[Turn, ToolCall] | None:
        """A call from here on. Of several that are alike, the first that was not asked for."""
        alike = [(n, call) for n, call in self._ahead() if (call.provider_id, call.tool) == (provider_id, name)]
        for place, call in alike:
            turn = self.turns[place]
            if call.id not in turn.served:
                turn.served.add(call.id)
                self._come_to(place, skipping=True)
                return turn, call
        return (self.turns[alike[0][0]], alike[0][1]) if alike else None

    def orders(self, calls: Collection[tuple[str, str]]) -> bool:
        """Whether one reply from here on orders all of these calls, by ids and tools. It is then come to."""
        for place in self._from_here():
            if set(calls) <= {(call.provider_id, call.tool) for call in self.turns[place].calls}:
                self._come_to(place, skipping=True)
                return True
        return False


def failure(failed: ModelFailed) -> Exception:
    """A recorded failure as it was raised, as far as its type is known everywhere."""
    made = built_in(failed.error_type, failed.error)
    return made or ModelError(failed.error, transient=failed.transient, billed=failed.billed)


def built_in(kind: str, text: str) -> Exception | None:
    """An error of Python's own of this class, from its recorded text; None when there is no such one."""
    found = getattr(builtins, kind, None)
    if found is Exception or not isinstance(found, type) or not issubclass(found, Exception):
        return None
    if issubclass(found, StopIteration | StopAsyncIteration):  # no coroutine can raise it
        return None
    with contextlib.suppress(TypeError):  # one that takes more than a text
        return found(text.removeprefix(f"{kind}: "))
    return None


class Chain:
    """The digest of a conversation: naming all messages at every request costs the new ones, not the history.

    It remembers the digest after each message that it has seen, by the message's identity.
    """

    def __init__(self) -> None:
        self._seen: list[tuple[Any, str]] = []

    def __contains__(self, digest: str) -> bool:
        """Whether what was digested last begins with what this is the digest of."""
        return any(known == digest for _, known in self._seen)

    def digest(self, messages: Sequence[Any], dump: Callable[[Any], bytes]) -> str:
        """The digest of these messages. Only those after the last common one are dumped and hashed."""
        same = 0
        for (known, _), message in zip(self._seen, messages, strict=False):
            if known is not message:
                break
            same += 1
        del self._seen[same:]
        so_far = self._seen[-1][1] if self._seen else ""
        for message in messages[same:]:
            so_far = replay.digest(so_far.encode() + dump(message))
            self._seen.append((message, so_far))
        return so_far
