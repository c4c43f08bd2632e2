"""`--on-question CMD`: a command of the user's is given each question and answers it, in JSON on its stdin and stdout.

    given     {"run", "id", "kind": "approve" or "settle", "call", "tool", "arguments", "why", "at"}
    answers   {"verdict": "approve", "refuse", "edit", "respond", "rerun", "done" or "failed", "who": "...",
              "text": "...", "arguments": {...} with edit, "always": {...} with approve}

All but the verdict may be left out. No output, `null`, a failure or an answer that does not fit the question leaves it
open: a hook that breaks must not decide anything.
"""

import asyncio
import shlex
import shutil
import subprocess
import tempfile
from typing import Any

import click
import msgspec

import runner
from replay import Question
from replay.values import FITS, Verdict
from runner._cli._io import out
from runner._cli._io.errors import Refused, Status
from runner._cli._io.progress import Watch
from runner._cli._render import as_json

option = click.option(
    "--on-question",
    metavar="CMD",
    help="Give each question to CMD: JSON on its stdin, the answer as JSON on its stdout.",
)


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
