"""The live view on a terminal: turns, spend against limits, the current call with its clock, what a death would mean.

It shows the newest saved state, so that what a person reads is what a resume would find, and below the ask or the call
that runs what is not saved yet: the end of the model's text as it comes, and what a call says of its progress.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live as Screen
from rich.text import Text

import replay
import runner
from replay import CallState, State
from replay.events import AttemptMarked, LookupAsked
from runner._cli._io.progress import Watch
from runner._cli._render import event_text, question_text
from runner._cli._render.escape import arguments, escape, marked, one_line

MAX_ARGUMENTS = 160
TAIL, ROWS = 800, 8
"""Characters and lines of the end of a text that is being written."""


class Live(Watch):
    """A view to be entered. `runs` is where the run lives; without it what is not saved is not shown."""

    def __init__(self, runs: str | None = None) -> None:
        super().__init__()
        self._runs = runs
        self._following: asyncio.Task[None] | None = None
        self._asked, self._text = (0, 0), ""
        self._progress: dict[str, str] = {}
        self._since: dict[str, float] = {}
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._screen = Screen(get_renderable=self.page, console=self._console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        self._screen.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the view; one line with the run's id and where it stands stays above the results."""
        self._screen.stop()
        if self.state is not None:
            self._console.print(Text(escape(summary(self.state))))

    @contextmanager
    def room(self) -> Iterator[None]:
        """While this lasts nothing is drawn: a person is typing."""
        self._screen.stop()
        try:
            yield
        finally:
            self._screen.start()

    def __call__(self, state: State, events: Sequence[replay.AnyEvent]) -> None:
        now = time.monotonic()
        self.state = state
        if self._runs is not None and self._following is None:
            stream = runner.stream(state.run, runs=self._runs, after=state.seq)
            self._following = asyncio.get_running_loop().create_task(self._follow(stream))
        running = [call.call.id for call in state.calls if call.in_flight or call.lookups.in_flight]
        if state.ask is not None:
            running.append("model")
        marked = {event.call for event in events if isinstance(event, AttemptMarked | LookupAsked)}
        self._progress = {call: text for call, text in self._progress.items() if call not in marked}
        self._since = {name: now if name in marked else self._since.get(name, now) for name in running}

    async def _follow(self, stream: AsyncIterator[Any]) -> None:
        """Take note of what is not saved; whatever that raises, the view goes on without it."""
        with contextlib.suppress(Exception):
            async for told in stream:
                if told.kind == "text":
                    before = self._text if self._asked == (told.turn, told.n) else ""
                    self._asked, self._text = (told.turn, told.n), (before + told.text)[-TAIL:]
                elif told.kind == "progress":
                    done = "" if told.fraction is None else f"{told.fraction:.0%} "
                    self._progress[told.call] = one_line(done + told.text, MAX_ARGUMENTS)

    def page(self) -> Group:
        return Group(*(Text(escape(text), style) for text, style in self._lines()))

    def _lines(self) -> Iterator[tuple[str, str]]:
        state = self.state
        if state is None:
            yield "opening the run", ""
            return
        yield state.run, "bold"
        resumes, spent = (
            f"{state.resumes} of {state.limits.resumes}",
            event_text.spent(state.spent, state.limits.dollars),
        )
        yield f"turn {event_text.turns(state)}, resume {resumes}, {spent}", ""
        if state.ask is not None:
            bound = event_text.money(state.ask.bound.dollars)
            yield f"asks the model {self._for('model')}, at most {bound}", ""
            yield "  if this process dies now: the ask is repeated, and this bound counts as spent", "dim"
            if self._asked == (state.turns + 1, state.ask.n):
                yield from ((line, "") for line in [*marked(self._text, None)][-ROWS:])
        for call in state.calls:
            if call.in_flight or call.lookups.in_flight:
                yield from self._call(call)
        if state.wait is not None:
            yield f"waits until {state.wait.until:%H:%M:%S} UTC ({state.wait.why})", ""
        for question in state.waiting:
            for text in question_text.asked(question):
                yield text, "bold"
            yield "  if this process dies now: nothing is lost, the question is in the log", "dim"
        if runner.draining():
            yield "parking: calls in flight may finish first; Ctrl-C again stops at once", "bold"
        else:
            yield "Ctrl-C parks the run, twice stops at once", "dim"

    def _call(self, call: CallState) -> Iterator[tuple[str, str]]:
        last = call.attempts[-1]
        what = "asks the service about" if call.lookups.in_flight else f"attempt {last.n} of"
        yield f"{call.call.id} {what} {call.call.tool} {self._for(call.call.id)}", "bold"
        yield f"  {arguments(call.call.arguments, MAX_ARGUMENTS)}", ""
        if progress := self._progress.get(call.call.id):
            yield f"  {progress}", ""
        yield f"  if this process dies now: {event_text.repeat(last.effect)}", "dim"

    def _for(self, name: str) -> str:
        now = time.monotonic()
        return f"{now - self._since.get(name, now):.0f} s"


def summary(state: State) -> str:
    """A run in one line: where it stands, its turns, and what it used."""
    spent = event_text.spent(state.spent, state.limits.dollars)
    return f"{state.run}: {event_text.phase(state)}, turn {event_text.turns(state)}, {spent}"
