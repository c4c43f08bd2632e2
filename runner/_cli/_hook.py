"""`--on-question CMD`: a command of the user's is given each question and answers it, in JSON on its stdin and stdout.

    given     {"run", "id", "kind": "approve" or "settle", "call", "tool", "arguments", "why", "at"}
    answers   {"verdict": "approve", "refuse", "rerun" or "done", "who": "...", "text": "..."}

`who` and `text` may be left out. No output, `null`, a failure or an answer that does not fit the question leaves it
open: a hook that breaks must not decide anything.
"""

from __future__ import annotations

import asyncio
import shlex
import shutil
import subprocess
import threading
from concurrent.futures import Future
from typing import Literal

import click
import msgspec

import runner
from replay import Question
from runner._cli import _facts, _out
from runner._cli._ask import View
from runner._cli._errors import Refused, Status

FITS = {"approve": ("approve", "refuse"), "settle": ("rerun", "done")}

option = click.option(
    "--on-question",
    metavar="CMD",
    help="Give each question to CMD: JSON on its stdin, the answer as JSON on its stdout.",
)


class Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the command answers."""

    verdict: Literal["approve", "refuse", "rerun", "done"]
    who: str = ""
    text: str = ""


def _talk(child: subprocess.Popen[bytes], asked: bytes, box: Future[bytes]) -> None:
    """Give a command its input and put all of its output into `box`."""
    box.set_running_or_notify_cancel()  # from here on nobody can cancel it: the command ends, or is killed
    try:
        output, _ = child.communicate(asked)
    except OSError as error:
        box.set_exception(error)
    else:
        box.set_result(output)


class Command:
    """Puts questions to a command. Raises `Refused`, status 2, when there is no such command."""

    def __init__(self, command: str, view: View) -> None:
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
        asked = {"run": state.run if state is not None else None, **_facts.question(question)}
        try:
            status, output = await self._output(msgspec.json.encode(asked))
        except OSError as error:
            return self._open(question, f"it could not be started: {error.strerror or error}")
        if status != 0:
            return self._open(question, f"it ended with status {status}")
        return self._read(question, output)

    def _read(self, question: Question, output: bytes) -> runner.Answer | None:
        try:
            said = msgspec.json.decode(output or b"null", type=Said | None)
        except (msgspec.MsgspecError, UnicodeError) as error:
            return self._open(question, f"its answer can't be read: {error}")
        if said is None:
            return None
        if said.verdict not in FITS[question.kind]:
            return self._open(question, f"{said.verdict} does not answer a question of kind {question.kind}")
        return runner.Answer(said.verdict, said.who or self._command, said.text)

    async def _output(self, asked: bytes) -> tuple[int | None, bytes]:
        """The command's exit status and output. Raises `OSError` when it can't be started; a signal ends it.

        A thread talks to it and may be left behind: children of the command's own may hold its pipe for long.
        """
        pipe = subprocess.PIPE
        child = subprocess.Popen(self._words, stdin=pipe, stdout=pipe)  # noqa: ASYNC220, S603 (quick; the user's own words)
        box: Future[bytes] = Future()
        threading.Thread(target=_talk, args=(child, asked, box), daemon=True).start()
        try:
            output = await asyncio.wrap_future(box)
        except asyncio.CancelledError:
            child.kill()
            raise
        return child.returncode, output.strip()

    def _open(self, question: Question, why: str) -> runner.Answer | None:
        """No answer, and the reason on stderr."""
        _out.err(f"refold: question {question.id} stays open: {self._command}: {why}")
        return None
