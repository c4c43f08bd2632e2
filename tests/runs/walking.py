"""A random history is forked at any line; the fork walks on in the same difficult walk, with the truth beside it."""

import replay
import runner
from replay import Event, Question
from replay.events import LookupAnswered, LookupAsked, ResultRecorded
from tests.support import tools
from tests.support.random_walk import LONGEST, RandomWalk
from tests.support.story import Story
from tests.support.walks import Tape

FORK = "f"


class Seen(dict[str, int]):
    """Effects by call, the fork's own under `f:`. Asked for a call of the fork's reply it finds the right one."""

    def __init__(self, before: dict[str, int], inherited: frozenset[str]) -> None:
        super().__init__(before)
        self.inherited = inherited

    def of(self, call: str) -> int:
        """How often a call of the fork acted."""
        return self.get(call if call in self.inherited else f"{FORK}:{call}", 0)


class Again(RandomWalk):
    """The fork of a finished walk at its line `seq`. Both share one service."""

    def __init__(self, parent: RandomWalk, seq: int, tape: bytes) -> None:
        super().__init__(Tape(tape), limits=parent.limits)
        lines = parent.story.lines
        made = replay.fork(lines, seq, run=FORK, uid=FORK, at=parent.story.now, host="h", pid=1)
        inherited = frozenset(call.call.id for call in made.state.calls if call.attempts)
        story = Story(tools.agent(limits=parent.limits))
        story.lines, story.written, story.decisions = [], [], []
        story.now, story.life, story.state = parent.story.now, made.state.life, made.state
        self.story = story
        self.fork_guard = made.state.fork_guard
        self.service = parent.service
        self.seen = Seen(parent.service.acted, inherited)
        self.service.acted = self.seen
        send, late = self.service.send, self.service.send_late
        self.service.send = lambda tool, call, key, at: send(tool, self._named(call, key), key, at)  # type: ignore[method-assign] # one service, two runs
        self.service.send_late = lambda tool, call, key, at: late(tool, self._named(call, key), key, at)  # type: ignore[method-assign] # as above
        self._ahead = parent._ahead  # noqa: SLF001 (the same time)
        story.die(1)

    @staticmethod
    def _named(call: str, key: str) -> str:
        return f"{FORK}:{call}" if key == runner.key(FORK, call) else call

    def _verdict(self, question: Question) -> str:  # type: ignore[override] # one of the same words
        if question.kind == "approve":
            return super()._verdict(question)
        effect = self.fork_guard[question.guarded] if question.guarded is not None else None
        parents = effect is not None and self.seen.get(effect.call, 0) > 0
        return "done" if parents or self.seen.of(question.call) else "rerun"

    def _lookup(self, asked: LookupAsked) -> Event:
        found = super()._lookup(asked)
        if isinstance(found, LookupAnswered) and found.said == "unsure":
            return found
        if self.seen.of(asked.call):
            return ResultRecorded(call=asked.call, how="found", text="ok")
        return LookupAnswered(call=asked.call, said="missing")

    @property
    def kind(self) -> bool:
        """Whether the walk has stopped being difficult."""
        return len(self.story.lines) >= LONGEST // 10
