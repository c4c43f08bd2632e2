"""Questions that are asked while the run goes on, of a person at the terminal or of a command.

Nothing is in flight while a question is open, and the question is in the log already. So a signal, an end of input or a
command that fails simply leaves it open: the run pauses, and any process may answer it later. (On a signal the runner
cancels the question.) At the terminal the default is No.

`--on-question CMD`: a command of the user's is given each question and answers it, in JSON on its stdin and stdout.

    given     {"run", "id", "kind": "approve" or "settle", "call", "tool", "arguments", "why", "at"}
    answers   {"verdict": "approve", "refuse", "edit", "respond", "rerun", "done" or "failed", "who": "...",
              "text": "...", "arguments": {...} with edit, "always": {...} with approve}

All but the verdict may be left out. No output, `null`, a failure or an answer that does not fit the question leaves it
open: a hook that breaks must not decide anything.
"""

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import termios
from typing import Any, Literal

import click
import msgspec

import runner
from replay import Question
from replay.values import FITS, Verdict
from runner._cli import options
from runner._cli._io import out
from runner._cli._io.errors import Refused, Status
from runner._cli._io.progress import Watch
from runner._cli._render import as_json, question_text

option = click.option(
    "--on-question",
    metavar="CMD",
    help="Give each question to CMD: JSON on its stdin, the answer as JSON on its stdout.",
)
Meant = Literal["approve", "refuse", "edit", "respond", "always", "rerun", "done"]
_YES_NO: dict[str, Meant | None] = {"y": "approve", "yes": "approve", "": "refuse", "n": "refuse", "no": "refuse"}
TYPED: dict[str, tuple[str, dict[str, Meant | None]]] = {
    "approve": ("[y/N, edit, respond, always] ", {**_YES_NO, "edit": "edit", "respond": "respond", "always": "always"}),
    "settle": ("[y/n, Enter decides later] ", {"y": "done", "yes": "done", "n": "rerun", "no": "rerun", "": None}),
}
"""For each kind of question what stands beside it, and what a typed word means; None leaves the question open."""


class Terminal:
    """Asks at the terminal. `who` is named in the answers."""

    def __init__(self, view: Watch, who: str) -> None:
        self._view = view
        self._who = who
        self._source = sys.stdin.fileno()
        self._typed = b""

    async def __call__(self, question: Question) -> runner.Answer | None:
        """The answer, or None to leave the question open."""
        with self._view.room():
            for text in question_text.asked(question):
                out.err(text)
            out.err("    (If this process dies now nothing is lost: the question is in the log.)")
            # Drop what was typed before the question was shown: nobody says yes to what they have not seen.
            self._typed = b""
            termios.tcflush(self._source, termios.TCIFLUSH)
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
        while (typed := await self._line(None, prompt)) is not None and typed not in or_else:
            with contextlib.suppress(click.BadParameter):
                options.json_object(typed)
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


def at_terminal() -> bool:
    """Whether somebody sits here who can be asked: they type on stdin and read stderr."""
    return sys.stdin.isatty() and sys.stderr.isatty()


class HookAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the command answers."""

    verdict: Verdict
    who: str = ""
    text: str = ""
    arguments: dict[str, Any] | None = None
    always: dict[str, Any] | None = None


class Command:
    """Puts questions to a command. Raises `Refused`, status 2, when there is no such command."""

    def __init__(self, command: str, view: Watch) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise Refused(f"--on-question {command!r} can't be split into words: {error}", "", Status.USAGE) from error
        if not self._words or shutil.which(self._words[0]) is None:
            raise Refused(f"--on-question: there is no command {command!r}", "", Status.USAGE)
        self._command = command
        self._view = view

    async def __call__(self, question: Question) -> runner.Answer | None:
        """The command's answer, or None to leave the question open."""
        state = self._view.state
        asked = {"run": state.run if state is not None else None, **as_json.question(question)}
        try:
            status, output = await self._output(msgspec.json.encode(asked))
        except OSError as error:
            return self._open(question, f"it could not be started: {error.strerror or error}")
        if status != 0:
            return self._open(question, f"it ended with status {status}")
        return self._read(question, output)

    def _read(self, question: Question, output: bytes) -> runner.Answer | None:
        try:
            said = msgspec.json.decode(output or b"null", type=HookAnswer | None)
        except (msgspec.MsgspecError, UnicodeError) as error:
            return self._open(question, f"its answer can't be read: {error}")
        if said is None:
            return None
        if said.verdict not in FITS[question.kind]:
            return self._open(question, f"{said.verdict} does not answer a question of kind {question.kind}")
        return runner.Answer(said.verdict, said.who or self._command, said.text, said.arguments, said.always)

    async def _output(self, asked: bytes) -> tuple[int | None, bytes]:
        """The command's exit status and output. Raises `OSError` when it can't be started; a signal ends it.

        It talks through files: children of its own may hold a pipe for long after it has ended.
        """
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as output:
            given.write(asked)
            given.seek(0)
            child = subprocess.Popen(self._words, stdin=given, stdout=output)  # noqa: ASYNC220, S603 (quick; the user's own words)
            try:
                await asyncio.to_thread(child.wait)
            finally:
                child.kill()
            output.seek(0)
            return child.returncode, output.read().strip()

    def _open(self, question: Question, why: str) -> runner.Answer | None:
        """No answer, and the reason on stderr."""
        out.err(f"refold: question {question.id} stays open: {self._command}: {why}")
        return None
