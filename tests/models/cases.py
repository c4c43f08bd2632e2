"""What these tests share: tools, agents, ways to run them, and the SDKs' own word on what a request may be."""

import functools
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pydantic
from anthropic.types import message_create_params
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params

import eventlog
import replay
import runner
from replay.events import ReplySaved
from tests.models.dialects import DIALECTS, CannedReply, Dialect
from tests.models.server import SSE, Answer, Seen

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
TASK = "Pay what is due, déjà vu 😀"
INSTRUCTIONS = "Be brief."
MODES = [(name, streamed) for name in DIALECTS for streamed in (False, True)]
IDS = [f"{name}-{'streamed' if streamed else 'whole'}" for name, streamed in MODES]

PARAMS: dict[tuple[str, bool], Any] = {
    ("anthropic", False): message_create_params.MessageCreateParamsNonStreaming,
    ("anthropic", True): message_create_params.MessageCreateParamsStreaming,
    ("responses", False): response_create_params.ResponseCreateParamsNonStreaming,
    ("responses", True): response_create_params.ResponseCreateParamsStreaming,
    ("chat", False): completion_create_params.CompletionCreateParamsNonStreaming,
    ("chat", True): completion_create_params.CompletionCreateParamsStreaming,
}


class Ticking(runner.Clock):
    """A clock that moves only when somebody sleeps, and then at once."""

    def __init__(self) -> None:
        self.at = NOON
        self.slept: list[float] = []

    def wall(self) -> datetime:
        """The time it stands at."""
        return self.at

    def monotonic(self) -> float:
        """The same in seconds."""
        return (self.at - NOON).total_seconds()

    async def sleep(self, seconds: float) -> None:
        """Move on."""
        self.slept.append(seconds)
        self.at += timedelta(seconds=seconds)


def tools(acts: Path) -> list[runner.Tool]:
    """A tool that reads and one that acts; each run of the second is a line in `acts`."""

    @runner.tool(effect="reads")
    def due(who: str) -> str:
        """What is due."""
        return f"{who}: 5 cents"

    @runner.tool(effect="keyed", key_ttl=timedelta(hours=24))
    def pay(cents: int, call: runner.Call) -> str:
        """Pay."""
        with acts.open("a") as file:
            file.write(f"{call.key} {cents}\n")
        return f"paid {cents}"

    return [due, pay]


def agent(model: runner.Model, acts: Path, **options: Any) -> runner.Agent:
    """An agent with both tools."""
    return runner.Agent(name="agent", model=model, tools=tools(acts), instructions=INSTRUCTIONS, **options)


def answers(dialect: Dialect, said: Sequence[CannedReply | Answer], *, streamed: bool) -> list[Answer]:
    """A server's answers: replies in a dialect, and whatever else it is told to do."""
    return [
        one
        if isinstance(one, Answer)
        else Answer(dialect.stream(one), headers=dict(SSE))
        if streamed
        else Answer(dialect.whole(one))
        for one in said
    ]


class Heard:
    """A model to each of whose replies somebody listens, as it comes."""

    def __init__(self, made: Any, heard: Any = lambda *_: None) -> None:
        self.name, self.bound, self.output_schema = made.name, made.bound, made.output_schema
        self._ask, self._heard = made.ask, heard

    async def ask(self, request: runner.Request) -> runner.Reply:
        """A reply, streamed."""
        reply: runner.Reply = await self._ask(msgspec.structs.replace(request, heard=self._heard))
        return reply


def model(dialect: Dialect, url: str, *, streamed: bool, **options: Any) -> Any:
    """A model that is served at `url`."""
    made = dialect.model(url, **options)
    return Heard(made) if streamed else made


def start(
    made: runner.Model,
    root: Path,
    run: str = "r",
    *,
    clock: Ticking | None = None,
    after: str | None = None,
    **options: Any,
) -> Any:
    """Start a run in `root` and return what it comes to; the options are the agent's."""
    given = agent(made, root / "acts", **options)
    return runner.start_sync(given, TASK, runs=root / "runs", run=run, clock=clock or Ticking(), after=after)


def resume(made: runner.Model, root: Path, run: str = "r", **options: Any) -> Any:
    """Resume it."""
    return runner.resume_sync(run, agent(made, root / "acts", **options), runs=root / "runs", clock=Ticking())


def acts(root: Path) -> list[str]:
    """The payments that were made, without their keys."""
    path = root / "acts"
    return [line.split(" ")[1] for line in path.read_text().splitlines()] if path.exists() else []


def events(root: Path, kind: type[Any], run: str = "r") -> list[Any]:
    """Every event of a kind, as a reader finds it on disk."""
    lines = eventlog.store(root / "runs").read(run).lines
    return [event for line in lines for raw in line.events if isinstance(event := replay.decode(raw), kind)]


def replies(root: Path, run: str = "r") -> list[runner.Reply]:
    """Every saved reply."""
    return [event.reply for event in events(root, ReplySaved, run)]


@functools.cache
def _adapter(name: str, streamed: bool) -> pydantic.TypeAdapter[Any]:
    return pydantic.TypeAdapter(PARAMS[name, streamed], config=None)


def lawful(dialect: Dialect, request: Seen) -> None:
    """Insist that the SDK's own types allow this request."""
    body = request.json
    for _ in _all(_adapter(dialect.name, bool(body.get("stream"))).validate_python(body)):
        pass


def _all(value: Any) -> Iterator[None]:
    """Walk through everything: pydantic checks what an iterable gives only when it is asked for."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from _all(inner)
    elif not isinstance(value, str | bytes) and hasattr(value, "__iter__"):
        for inner in value:
            yield from _all(inner)
    yield None
