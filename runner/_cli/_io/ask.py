"""Questions that are asked while the run goes on, of a person at the terminal or of a command.

Nothing is in flight while a question is open, and the question is in the log already. So a signal, an end of input or a
command that fails simply leaves it open: the run pauses, and any process may answer it later. (On a signal the runner
cancels the question.) At the terminal the default is No.
"""

import asyncio
import json
import os
import sys
import termios
from typing import Literal

import runner
from replay import Question
from runner._cli._io import out
from runner._cli._io.progress import Watch
from runner._cli._render import question_text

Meant = Literal["approve", "refuse", "edit", "respond", "always", "rerun", "done"]
_YES_NO: dict[str, Meant | None] = {"y": "approve", "yes": "approve", "": "refuse", "n": "refuse", "no": "refuse"}
TYPED: dict[str, tuple[str, dict[str, Meant | None]]] = {
    "approve": ("[y/N, edit, respond, always] ", {**_YES_NO, "edit": "edit", "respond": "respond", "always": "always"}),
    "settle": ("[y/n, Enter decides later] ", {"y": "done", "yes": "done", "n": "rerun", "no": "rerun", "": None}),
}
"""For each kind of question what stands beside it, and what a typed word means; None leaves the question open."""


class Terminal:
    """Asks at the terminal. `who` is named in the answers; lines are read from `source`, a file descriptor."""

    def __init__(self, view: Watch, who: str, source: int | None = None) -> None:
        self._view = view
        self._who = who
        self._source = sys.stdin.fileno() if source is None else source
        self._typed = b""

    async def __call__(self, question: Question) -> runner.Answer | None:
        """The answer, or None to leave the question open."""
        with self._view.room():
            for text in question_text.asked(question):
                out.err(text)
            out.err("    (If this process dies now nothing is lost: the question is in the log.)")
            self._forget()
            return await self._answer(question)

    def _forget(self) -> None:
        """Drop what was typed before the question was shown: nobody says yes to what they have not seen."""
        self._typed = b""
        if os.isatty(self._source):
            termios.tcflush(self._source, termios.TCIFLUSH)

    async def _answer(self, question: Question) -> runner.Answer | None:
        hint, meant = TYPED[question.kind]
        while (typed := await self._line(question, hint)) is not None:
            if typed.lower() in meant:
                verdict = meant[typed.lower()]
                return None if verdict is None else await self._whole(question, verdict)
        return None

    async def _whole(self, question: Question, verdict: Meant) -> runner.Answer | None:
        """The answer with all that belongs to it, or None at the end of input."""
        typed: str | None = ""
        if verdict == "done":
            same = "" if question.guarded is None else "[Enter: the same] "
            typed = await self._line(None, f"What was its result? {same}")
        elif verdict == "rerun" and runner.NeedsPerson.FORM.match(question.why):
            typed = await self._json("What is its answer, as JSON, or decline? ", "decline")
        elif verdict == "edit":
            typed = await self._json("With which arguments, as JSON? ")
        elif verdict == "always":
            typed = await self._json("In this run, with which values of arguments, as JSON? [Enter: these] ", "")
        elif verdict == "respond":
            while (typed := await self._line(None, "What is its result? ")) == "":
                pass
        if typed is None:
            return None
        if verdict == "edit":
            return runner.Answer("edit", self._who, arguments=json.loads(typed))
        if verdict == "always":
            return runner.Answer("approve", self._who, always=json.loads(typed or question.arguments))
        return runner.Answer(verdict, self._who, typed)

    async def _json(self, prompt: str, *or_else: str) -> str | None:
        """A JSON object, or one of the other words; None at the end of input."""
        while (typed := await self._line(None, prompt)) is not None:
            if typed in or_else or _is_object(typed):
                break
        return typed

    async def _line(self, question: Question | None, prompt: str) -> str | None:
        """A line that was typed, or None at the end of input. The question is named again beside the prompt."""
        asked = "" if question is None else f"{question_text.prompt(question)} "
        sys.stderr.write(asked[:1].upper() + asked[1:] + prompt)
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


def _is_object(typed: str) -> bool:
    try:
        return isinstance(json.loads(typed), dict)
    except (ValueError, RecursionError):
        return False


def at_terminal() -> bool:
    """Whether somebody sits here who can be asked: they type on stdin and read stderr."""
    return sys.stdin.isatty() and sys.stderr.isatty()
