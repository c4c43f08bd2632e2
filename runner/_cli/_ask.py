"""Questions that are put while the run goes on: to whoever sits at the terminal, or to a command of theirs.

Nothing is in flight while a question is open, and the question is in the log already. So a signal, an end of input or a
command that fails simply leaves it open: the run pauses, and any process may answer it later. (On a signal the runner
cancels whoever was asked.) At the terminal the default is No.
"""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from contextlib import AbstractContextManager
from typing import Protocol

import runner
from replay import Question, State
from runner._cli import _out, _questions


class View(Protocol):
    """What shows the run's progress: it knows the newest state, and makes room for a prompt."""

    state: State | None

    def room(self) -> AbstractContextManager[None]:
        """While this lasts the view draws nothing."""
        ...


class Terminal:
    """Asks at the terminal. `who` is named in the answers; lines are read from `source`, a file descriptor."""

    def __init__(self, view: View, who: str, source: int | None = None) -> None:
        self._view = view
        self._who = who
        self._source = sys.stdin.fileno() if source is None else source
        self._typed = b""

    async def __call__(self, question: Question) -> runner.Answer | None:
        """The answer, or None to leave the question open."""
        with self._view.room():
            for text in _questions.asked(question):
                _out.err(text)
            _out.err("    (If this process dies now nothing is lost: the question is in the log.)")
            self._forget()
            if question.kind == "approve":
                return await self._approve()
            return await self._settle(offered=question.fenced is not None)

    def _forget(self) -> None:
        """Drop what was typed before the question was shown: nobody says yes to what they have not seen."""
        self._typed = b""
        if os.isatty(self._source):
            termios.tcflush(self._source, termios.TCIFLUSH)

    async def _approve(self) -> runner.Answer | None:
        while True:
            typed = await self._line("May it run? [y/N] ")
            if typed is None:
                return None
            if typed.lower() in ("y", "yes"):
                return runner.Answer("approve", self._who)
            if typed.lower() in ("", "n", "no"):
                return runner.Answer("refuse", self._who)

    async def _settle(self, *, offered: bool) -> runner.Answer | None:
        while True:
            typed = await self._line("Did it happen? [y/n, Enter decides later] ")
            if not typed:
                return None
            if typed.lower() in ("n", "no"):
                return runner.Answer("rerun", self._who)
            if typed.lower() in ("y", "yes"):
                found = await self._line(f"What did it come to? {'[Enter: to the same] ' if offered else ''}")
                return None if found is None else runner.Answer("done", self._who, found)

    async def _line(self, prompt: str) -> str | None:
        """A line that was typed, or None at the end of input."""
        sys.stderr.write(prompt)
        sys.stderr.flush()
        while b"\n" not in self._typed:
            more = await self._more()
            if not more:
                sys.stderr.write("\n")
                return None
            self._typed += more
        typed, self._typed = self._typed.split(b"\n", 1)
        return typed.decode(errors="replace").strip()

    async def _more(self) -> bytes:
        """What is typed next. A signal cancels the wait, because nobody may be at the keyboard."""
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._source, ready.set)
        try:
            await ready.wait()
        except asyncio.CancelledError:
            sys.stderr.write("\n")
            raise
        finally:
            loop.remove_reader(self._source)
        return os.read(self._source, 4096)


def at_terminal() -> bool:
    """Whether somebody sits here who can be asked: they type on stdin and read stderr."""
    return sys.stdin.isatty() and sys.stderr.isatty()
