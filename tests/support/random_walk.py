"""A random walk: `decide` against outside systems that may do anything the contract allows, the truth kept beside.

A model replies with any calls; a service refuses, loses replies, acts and does not say so, acts late, forgets keys; the
process dies before or after it acted, is parked, finds its clock set back, is deployed anew; a person keeps it waiting.
After a while the walk turns kind: nothing fails any more, the model comes to its answer, the person answers. What must
always hold is stated on finished walks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Literal, Protocol, TypeVar

from msgspec.structs import replace

import runner
from replay import Event, Question
from replay.events import (
    AttemptEnded,
    AttemptMarked,
    LookupAnswered,
    LookupAsked,
    ModelAsked,
    ModelFailed,
    QuestionAnswered,
    ReplySaved,
    ResultRecorded,
    RunStopped,
)
from replay.messages import Reply, ToolCall, Usage
from replay.values import Limits
from runner._policy import resume_check
from tests.support import tools
from tests.support.service import Service
from tests.support.story import Story, named

T = TypeVar("T")
Verdict = Literal["approve", "refuse", "rerun", "done"]
KIND_AFTER = 40
LONGEST = 400
"""Lines: a walk that writes more runs in a circle."""
CALLS = (
    *[
        (name, '{"cause": "a"}')
        for name in ("look",) * 3 + ("put",) + ("pay",) * 2 + ("push",) + ("patch",) * 2 + ("send",)
    ],
    ("pay", '{"cause": "b"}'),
    ("pay", '{"cause": "c"}'),
    ("pay", '{"cause": '),
    ("nope", "{}"),
)
ATTEMPTS = ("acts", "acts", "acts", "silent", "lost", "late", "no", "never", "asks")
ACTS = (ModelAsked, AttemptMarked, LookupAsked)
DEPLOYS = (
    tools.agent(),
    tools.agent(approve="off"),
    tools.agent(tools.LOOK, tools.PUT, tools.PAY, tools.PUSH),
    tools.agent(
        tools.LOOK,
        tools.PAY,
        tools.make("put", "non_idempotent"),
        tools.make("push", "non_idempotent"),
        tools.PATCH,
        tools.SEND,
    ),
)


class Choose(Protocol):
    """One of several options. The first is the quiet one."""

    def __call__(self, options: Sequence[T], /) -> T:
        """Give one of them."""
        ...


class RandomWalk:
    """One walk. `how` it ended: done, stopped, or paused with a person who left.

    `calls` are what the model may call, `attempts` how an attempt may go.
    """

    calls: Sequence[tuple[str, str]] = CALLS
    attempts: Sequence[str] = ATTEMPTS

    def __init__(
        self,
        choose: Choose,
        *,
        agent: runner.Agent | None = None,
        limits: Limits | None = None,
        deploys: bool = False,
    ) -> None:
        self._choose = choose
        self._deploys = deploys
        self.limits = limits or Limits(resumes=20)
        self.story = Story((agent or tools.agent()).replace(limits=self.limits))
        self.service = Service()
        self.how = ""
        self._ahead = timedelta()
        self._gone = False
        self._flying: list[Event] = []

    @property
    def kind(self) -> bool:
        """Whether the walk has stopped being difficult."""
        return len(self.story.lines) >= KIND_AFTER

    def walk(self) -> RandomWalk:
        """Go on until the run is done, stopped, or waits for a person who left."""
        outcomes: list[Event] = []
        while not self.how:
            assert len(self.story.lines) < LONGEST, "the run never ends"
            intents = self.story.go(*outcomes)
            self._flying += [intent for intent in intents if isinstance(intent, ACTS)]
            if not (outcomes or intents or self._flying):
                self._rest()
                continue
            outcomes = []
            if self._often(24):
                self._die()
                continue
            outcomes = self._perform(self._landing())
            self._pass_time((0, 1, 5))
            if self._often(24):
                outcomes = []
                self._die()
            elif self.story.state.phase != "done" and self._often(40):
                self._cut_off()
                self.story.write(*self._part(outcomes), RunStopped(reason="Interrupted"))
                outcomes = []
        self._pass_time((3600,))
        return self

    def _landing(self) -> list[Event]:
        """Some of what is in flight comes to its end, in any order: all of it in a kind walk, maybe none in others."""
        more = len(self._flying) > 1 and not self.kind
        left = self._choose(range(len(self._flying) + 1)) if more else 0
        count = len(self._flying) - left
        return [self._flying.pop(self._choose(range(len(self._flying))) if more else 0) for _ in range(count)]

    def _cut_off(self) -> None:
        """Nobody hears any more of what is in flight; some of it has acted."""
        self._perform(self._landing() if len(self._flying) > 1 else [])
        self._flying.clear()

    def _often(self, sides: int) -> bool:
        """Whether a die shows its last side: never in a kind walk."""
        return not self.kind and self._choose(range(sides)) == sides - 1

    def _pass_time(self, seconds: Sequence[float]) -> None:
        self.story.tick(self._choose(seconds))
        self.service.pass_time(self._real)

    @property
    def _real(self) -> datetime:
        """The services' time."""
        return self.story.now + self._ahead

    def _part(self, outcomes: list[Event]) -> list[Event]:
        """What came back before a park; the rest was cut off."""
        return outcomes[: self._choose(range(len(outcomes) + 1))]

    def _die(self) -> None:
        """The process is gone; another one opens the run, if it may."""
        self._cut_off()
        back = self._often(6)
        if back:
            self._ahead += timedelta(days=365)
        self._pass_time((1, 40, 4000))
        agent = self.story.agent
        if self._deploys and self._often(4):
            agent = self._choose(DEPLOYS)
            self.limits = replace(self.limits, turns=self._choose((None, 30)))
        state = self.story.state
        self._gone = resume_check.waits(agent, state, self.story.now)
        if state.phase == "done" or self._gone:
            return
        try:
            self.story.die(0, clock_back=back, agent=agent.replace(limits=self.limits))
        except runner.Stopped:
            self.how = "stopped"

    def _rest(self) -> None:
        """Nothing is due: why, and what then."""
        state = self.story.state
        if state.phase == "done":
            self.how = "done"
        elif state.waiting:
            self._person()
        elif state.stopped is not None:
            if state.stopped.reason == "TooManyResumes" or self._often(2):
                self.how = "stopped"
            else:
                self._die()
        else:
            left = (state.wait.until - self.story.now).total_seconds() if state.wait is not None else 0
            assert left > 0, "nothing is due, and nothing will be"
            self.story.tick(left)
            self.service.pass_time(self._real)

    def _person(self) -> None:
        """A person answers one question, truly, after a while; in this process or in another one."""
        if self._often(8):
            self.how = "paused"
            return
        self._pass_time((100, 7200))
        question = self._choose(self.story.state.waiting)
        self.story.write(
            QuestionAnswered(id=question.id, answer=self._verdict(question), who="ann", digest=question.digest)
        )
        if self._gone or self.story.state.stopped is not None or self._often(2):
            self._die()

    def _verdict(self, question: Question) -> Verdict:
        if question.kind == "approve":
            return self._choose(("approve", "approve", "refuse"))
        return "done" if self.service.acted.get(question.call) else "rerun"

    def _perform(self, intents: Sequence[Event]) -> list[Event]:
        play: dict[type[Event], Callable[..., Event]] = {
            ModelAsked: lambda _: self._model(),
            AttemptMarked: self._attempt,
            LookupAsked: self._lookup,
        }
        return [play[type(intent)](intent) for intent in intents]

    def _model(self) -> Event:
        if self._often(8):
            retry_after = self._choose((None, 100.0))
            return ModelFailed(
                error="busy", transient=not self._often(8), billed=self._choose((True, False)), retry_after=retry_after
            )
        usage = Usage(input_tokens=self._choose((10, 500)), output_tokens=5)
        wanted = range(0) if self.kind else range(self._choose((0, 1, 1, 2, 3, 4)))
        reply = Reply(
            text="so it is",
            calls=tuple(ToolCall(tool=t, arguments=a) for t, a in (self._choose(self.calls) for _ in wanted)),
            usage=usage,
            dollars=self._choose((0.25, None)),
            stop="length" if self._often(10) else "pause" if self._often(3) else "stop",
        )
        return ReplySaved(reply=named(reply, self.story.state.turns + 1))

    def _attempt(self, marked: AttemptMarked) -> Event:
        call = self.story.state.find(marked.call)
        tool = self.story.agent.tool(call.call.tool) if call is not None else None
        assert tool is not None
        how = "acts" if self.kind else self._choose(self.attempts)
        retry_after = self._choose((None, 2.0, 90.0)) if how in ("silent", "lost", "late") else None
        if how in ("acts", "silent"):
            self.service.send(tool, marked.call, marked.key, self._real)
        if how == "acts":
            return ResultRecorded(call=marked.call, how="ran", text="ok", n=marked.n)
        if how == "late":
            within = timedelta(seconds=tool.visible_within * self._choose((0.1, 0.99)))
            self.service.send_late(tool, marked.call, marked.key, self._real + within)
        did_nothing = how in ("no", "never") or (tool.effect == "reads" and how != "asks")
        return AttemptEnded(
            call=marked.call,
            n=marked.n,
            did="nothing" if did_nothing else "unknown",
            retry_after=30.0 if how == "no" else retry_after,
            error=how,
            asks=how == "asks",
        )

    def _lookup(self, asked: LookupAsked) -> Event:
        how = "answers" if self.kind else self._choose(("answers", "answers", "unsure", "raises"))
        if how == "raises":
            return LookupAnswered(call=asked.call, said="unsure", error="down")
        if how == "unsure":
            return LookupAnswered(call=asked.call, said="unsure")
        if self.service.acted.get(asked.call):
            return ResultRecorded(call=asked.call, how="found", text="ok")
        return LookupAnswered(call=asked.call, said="missing")
