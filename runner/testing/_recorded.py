"""Recordings: a model's replies in a file, for runs without money or network.

A recording is JSON lines, one for each reply. Each line names the request that it answers: turn and purpose, digests of
the instructions, of the tools, and of the earlier replies with their calls. The texts of results and of other messages
are not compared, because they may differ between runs. A different request is an error that says which part differs.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

import replay
from replay.messages import AssistantMessage, CostBound, Reply, ToolResults
from runner import Model, ModelError, Request, RunError


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a recording."""

    turn: int
    purpose: str
    instructions: str
    tools: str
    history: str
    reply: Reply


class BadRecording(RunError):
    """A file is not a recording, or can't be read."""

    sentence = "{path} is not a recording: {why}"
    hint = "Record it anew with `runner.testing.RecordingModel`."
    path: str
    why: str


def _history(request: Request) -> str:
    """The digest of a conversation's replies and of the results' names, without the results' text."""
    parts: list[object] = []
    for message in request.messages:
        if isinstance(message, AssistantMessage):
            parts.append([message.reply.text, [[c.tool, c.arguments, c.id] for c in message.reply.calls]])
        elif isinstance(message, ToolResults):
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


class RecordedModel:
    """A model that gives the replies of a recording.

    Args:
        path: The file that a `RecordingModel` wrote.
        strict: Whether a request that differs from the recorded one is an error; otherwise each turn has its reply.

    Raises:
        BadRecording: The file can't be read as a recording.
    """

    name = "recorded"

    def __init__(self, path: str | Path, *, strict: bool = True) -> None:
        self._strict = strict
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

    def bound(self, request: Request) -> CostBound:
        """What the recorded reply cost."""
        line = self._lines.get((request.turn, request.purpose))
        if line is None:
            return CostBound(dollars=0.0)  # `ask` will raise
        usage = line.reply.usage
        return CostBound(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, dollars=line.reply.dollars)

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
        if differ and self._strict:
            message = f"the recording of turn {request.turn} answers another request: {', '.join(differ)} differ"
            raise ModelError(message, transient=False)
        return line.reply


class RecordingModel:
    """A model that asks another model and appends each reply to a recording.

    Args:
        model: The model to ask.
        path: The file to append to.
    """

    def __init__(self, model: Model, path: str | Path) -> None:
        self.name = model.name
        self._model = model
        self._path = Path(path)

    def bound(self, request: Request) -> CostBound:
        """The other model's bound."""
        return self._model.bound(request)

    async def ask(self, request: Request) -> Reply:
        """The other model's reply, after it was recorded."""
        reply = await self._model.ask(request)
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(_recording(request, reply)) + b"\n")
        return reply
