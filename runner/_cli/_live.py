"""The live view on a terminal: turns, spend against limits, the current call with its clock, what a death would mean.

It shows the newest saved state and nothing else, so that what a person reads is what a resume would find.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from rich.console import Console, Group
from rich.live import Live as Screen
from rich.text import Text

import replay
import runner
from replay import CallState, State
from runner._cli import _out, _questions, _words

MAX_ARGUMENTS = 160


class Live:
    """A view to be entered; `clock` gives seconds and only its differences matter."""

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.state: State | None = None
        self._console = console or Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._clock = clock
        self._since: dict[str, float] = {}
        self._screen = Screen(get_renderable=self.page, console=self._console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        """Begin to draw."""
        self._screen.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Clear the view away: what remains on the terminal are results."""
        self._screen.stop()

    @contextmanager
    def room(self) -> Iterator[None]:
        """While this lasts nothing is drawn: a person is typing."""
        self._screen.stop()
        try:
            yield
        finally:
            self._screen.start()

    def __call__(self, state: State, events: Sequence[replay.AnyEvent]) -> None:
        """Show a newly saved state."""
        now = self._clock()
        self.state = state
        running = [call.call.id for call in state.calls if call.in_flight or call.lookups.in_flight]
        if state.ask is not None:
            running.append("model")
        marked = {event.call for event in events if isinstance(event, replay.AttemptMarked | replay.LookupAsked)}
        self._since = {name: now if name in marked else self._since.get(name, now) for name in running}

    def page(self) -> Group:
        """What is drawn now."""
        return Group(*(Text(_out.shown(text), style) for text, style in self._lines()))

    def _lines(self) -> Iterator[tuple[str, str]]:
        state = self.state
        if state is None:
            yield "opening the run", ""
            return
        yield state.run, "bold"
        yield f"turn {_words.turns(state)}, resume {state.resumes} of {state.limits.resumes}, {_words.spent(state)}", ""
        if state.ask is not None:
            bound = _words.money(state.ask.bound.dollars)
            yield f"asks the model {self._for('model')}, at most {bound}", ""
            yield "  if this process dies now: the ask is repeated, and this bound counts as spent", "dim"
        for call in state.calls:
            if call.in_flight or call.lookups.in_flight:
                yield from self._call(call)
        if state.wait is not None:
            yield f"waits until {state.wait.until:%H:%M:%S} UTC ({state.wait.why})", ""
        for question in state.waiting:
            for text in _questions.asked(question):
                yield text, "bold"
            yield "  if this process dies now: nothing is lost, the question is in the log", "dim"
        if runner.parking():
            yield "parking: what is in flight may end first; Ctrl-C again stops at once", "bold"
        else:
            yield "Ctrl-C parks the run, twice stops at once", "dim"

    def _call(self, call: CallState) -> Iterator[tuple[str, str]]:
        last = call.attempts[-1]
        what = "asks the service about" if call.lookups.in_flight else f"attempt {last.n} of"
        yield f"{call.call.id} {what} {call.call.tool} {self._for(call.call.id)}", "bold"
        yield f"  {_out.line(call.call.arguments, MAX_ARGUMENTS)}", ""
        yield f"  if this process dies now: {_words.repeat(last.effect)}", "dim"

    def _for(self, name: str) -> str:
        return f"{self._clock() - self._since.get(name, self._clock()):.0f} s"
