"""What runs in processes that may die: one agent over a vendor's model, started or resumed."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import Any

import replay
import runner
from replay.events import ReplySaved, WaitUntil
from replay.messages import UserMessage
from tests.models import cases
from tests.models.dialects import DIALECTS, KEY


class Dying:
    """A model whose process dies when a reply has arrived, before anybody saved it."""

    def __init__(self, model: Any) -> None:
        self.name = model.name
        self.bound = model.bound
        self._model = model

    async def ask(self, request: runner.Request) -> runner.Reply:
        """Die."""
        await self._model.ask(request)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


def run(root: str, *, dialect: str, url: str, streamed: bool, resumed: bool, die: str = "", waits: int = 1) -> Any:
    """Start a run, or resume it.

    `die`: when the first reply has `arrived`, when it is `saved`, or in the middle of the `waits`-th `backoff`.
    """
    os.environ |= {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY, "NO_PROXY": "127.0.0.1"}
    made = cases.model(DIALECTS[dialect], url, streamed=streamed)
    waited = 0

    def watch(_state: replay.State, events: Any) -> None:
        nonlocal waited
        waited += sum(isinstance(event, WaitUntil) for event in events)
        saved = any(isinstance(event, ReplySaved) for event in events)
        if (die == "saved" and saved) or (die == "backoff" and waited == waits):
            os.kill(os.getpid(), signal.SIGKILL)

    given = cases.agent(Dying(made) if die == "arrived" else made, Path(root) / "acts")
    options: Any = {"runs": Path(root) / "runs", "watch": watch, "clock": cases.Ticking()}
    try:
        came = (
            runner.resume_sync("r", given, **options)
            if resumed
            else runner.start_sync(given, cases.TASK, run="r", **options)
        )
    except runner.Stopped as stopped:
        return {"stopped": stopped.reason, "detail": stopped.detail}
    assert isinstance(came, runner.Finished)
    return {"answer": came.answer}


def warm() -> None:
    """Import, before the first fork, what the SDKs import at their first request."""
    for dialect in DIALECTS.values():
        with contextlib.suppress(runner.ModelError):
            request = runner.Request(
                run="",
                purpose="turn",
                turn=1,
                n=1,
                instructions="",
                tools=(),
                messages=(UserMessage("x"),),
                parameters={},
            )
            asyncio.run(cases.model(dialect, "http://127.0.0.1:9", streamed=False).ask(request))
