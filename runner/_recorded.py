"""Recordings: a model's replies in a file, for a job that must run without money or network.

A recording is JSON lines, one per reply. Each names what it was an answer to: the turn and purpose, digests of the
instructions and the tools, and of the replies before it with the calls they came to. A result's text does not count,
since it may vary from run to run; nor does what the runner or a person said, such as a note on files that somebody
vouched for. Asked something else it fails loudly and says which part differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

import replay
from replay import Answered, Bound, Replied, Reply
from runner._model import Model, Request
from runner.errors import ModelError, RunError


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a recording."""

    turn: int
    purpose: str
    instructions: str
    tools: str
    history: str
    reply: Reply


class BadRecording(RunError):
    """A file that is no recording."""

    hint = "Record it anew with `runner.Recorder`."

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path = path
        self.why = why

    def __str__(self) -> str:
        return f"{self.path} is not a recording: {self.why}"


def _history(request: Request) -> str:
    """The digest of a conversation's replies and of what was answered to them, without the results' text."""
    parts: list[object] = []
    for message in request.messages:
        if isinstance(message, Replied):
            parts.append([message.reply.text, [[c.tool, c.arguments, c.id] for c in message.reply.calls]])
        elif isinstance(message, Answered):
            parts.append([[r.call, r.tool] for r in message.results])
    return replay.digest_value(parts)


def _recording(request: Request, reply: Reply) -> Recording:
    return Recording(
        turn=request.turn,
        purpose=request.purpose,
        instructions=replay.digest(request.instructions.encode("utf-8", "replace")),
        tools=replay.digest_value([list(tool) for tool in request.tools]),
        history=_history(request),
        reply=reply,
    )


class Recorded:
    """A model that plays a recording. Raises `BadRecording` when the file can't be read as one."""

    name = "recorded"

    def __init__(self, path: str | Path) -> None:
        self._lines: dict[tuple[int, str], Recording] = {}
        try:
            for raw in Path(path).read_bytes().split(b"\n"):
                if raw.strip():
                    line = msgspec.json.decode(raw, type=Recording)
                    self._lines[line.turn, line.purpose] = line
        except (OSError, msgspec.MsgspecError) as error:
            raise BadRecording(str(path), str(error)) from error

    @property
    def replies(self) -> Mapping[tuple[int, str], Reply]:
        """Every reply by its turn and purpose."""
        return {place: line.reply for place, line in self._lines.items()}

    def bound(self, request: Request) -> Bound:
        """What the recorded reply costs: it is known."""
        line = self._lines.get((request.turn, request.purpose))
        if line is None:
            return Bound(dollars=0.0)  # it will not be answered: `ask` says so
        usage = line.reply.usage
        return Bound(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, dollars=line.reply.dollars)

    async def ask(self, request: Request) -> Reply:
        """The recorded reply.

        Raises a permanent `ModelError` that names what differs when it was recorded for another request.
        """
        line = self._lines.get((request.turn, request.purpose))
        if line is None:
            message = f"the recording has no {request.purpose} reply for turn {request.turn}"
            raise ModelError(message, transient=False)
        now = _recording(request, line.reply)
        parts = ("instructions", "tools", "history")
        differ = [part for part in parts if getattr(now, part) != getattr(line, part)]
        if differ:
            message = f"the recording of turn {request.turn} answers another request: {', '.join(differ)} differ"
            raise ModelError(message, transient=False)
        return line.reply


class Recorder:
    """A model that asks another and appends each reply to a recording."""

    def __init__(self, model: Model, path: str | Path) -> None:
        self.name = model.name
        self._model = model
        self._path = Path(path)

    def bound(self, request: Request) -> Bound:
        """The asked model's."""
        return self._model.bound(request)

    async def ask(self, request: Request) -> Reply:
        """The asked model's reply, written down."""
        reply = await self._model.ask(request)
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(_recording(request, reply)) + b"\n")
        return reply
