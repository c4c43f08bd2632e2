"""The agent that is tortured. Each run is of a shape, which its task names; `witness` is where its tools act."""

from __future__ import annotations

import asyncio
import math
import os
import random
import signal
import time
from datetime import timedelta
from typing import Any

import httpx

import runner
import runner.web
from replay.messages import UserMessage
from runner.testing import ScriptedModel, tool_calls

TIMEOUT, QUICK = 6.0, 2.0
WITHIN, LATE = 1.0, 0.4
"""Seconds after which a service shows what it was sent, and after which a request that was sent is late."""
PAYS, SENDS, MAILS, POSTS = ("pay", {"n": 1}), ("send", {"n": 2}), ("mail", {"n": 3}), ("post", {"n": 8})
SHAPES: dict[str, list[Any]] = {
    "pays": [[PAYS], [SENDS]],
    "mails": [[MAILS], [PAYS]],
    "posts": [[POSTS]],
    "asks": [[("refund", {"n": 4})], [SENDS]],
    "gate": [[("gated", {"n": 5})]],
    "long": [[("gated_long", {"n": 9})]],
    "frozen": [[("freezes", {"n": 6})]],
    "late": [[("slept", {"n": 7})]],
    "keeps": [[PAYS]],
}
"""What the model asks for, turn after turn. A run `loops` never ends by itself."""


class Script(ScriptedModel):
    """A model that plays the shape its task names."""

    async def ask(self, request: runner.Request) -> runner.Reply:
        """The next turn."""
        task, done = request.messages[0], request.turn - 1
        assert isinstance(task, UserMessage)
        shape = task.text.split()[0]
        if shape == "loops":
            await asyncio.sleep(0.1)
            return tool_calls(("look", {"n": done}))
        script = SHAPES[shape]
        return tool_calls(*script[done]) if done < len(script) else runner.Reply(text=f"{shape} is done")


class Clerk:
    """The tools, for one process. A mail takes up to `lasts` seconds."""

    def __init__(self, witness: str, lasts: float = 5.0) -> None:
        self._witness, self._lasts = witness, lasts
        hooks: dict[str, Any] = {"request": [self._stamp, runner.web.key_hook]}
        options: dict[str, Any] = {"base_url": witness, "trust_env": False, "timeout": TIMEOUT}
        self._fenced = httpx.AsyncClient(**options, event_hooks=hooks)
        self._plain = httpx.AsyncClient(**options)

    async def _stamp(self, request: httpx.Request) -> None:
        """Say who sends, and that it is asked now whether the run is held."""
        request.headers.update(self._who())

    def _who(self, most: float = math.inf) -> dict[str, str]:
        """Who sends, and by when that is there unless the machine stands still."""
        return {"x-pid": str(os.getpid()), "x-until": repr(min(time.monotonic() + LATE, most))}

    async def _send(self, kind: str) -> object:
        await asyncio.sleep(random.random() * 0.1)  # noqa: S311
        with runner.web.sending():
            return runner.web.result(await self._fenced.post(f"/{kind}"))

    async def _after(self, seconds: float, kind: str, call: runner.Call) -> object:
        """What began while the run was held, and asks no more: only its timeout bounds it."""
        most = time.monotonic() + self._lasts + 1
        await asyncio.sleep(seconds)
        headers = {"idempotency-key": call.key, **self._who(most)}
        return (await self._plain.post(f"/{kind}", headers=headers)).json()

    def _sync(self, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self._witness, trust_env=False, timeout=60.0, **options)

    def _is_open(self, call: runner.Call) -> bool:
        """Say that a body has begun, and ask whether it may go on."""
        headers = {"idempotency-key": call.key, **self._who()}
        with self._sync() as client:
            return bool(client.post("/go", headers=headers).json()["open"])

    async def _look(self, call: runner.Call) -> runner.Found | runner.Missing:
        found = (await self._plain.get("/count", params={"key": call.key})).json()["n"]
        return runner.Found(found) if found else runner.Missing()

    def tools(self) -> list[runner.Tool]:  # noqa: C901 (each is a tool of a line or two)
        """All of them; the `gated`, `freezes` and `slept` are for the tests that take one safeguard away."""
        keyed: dict[str, Any] = {"effect": "keyed", "key_ttl": timedelta(hours=24), "timeout": TIMEOUT}
        once: dict[str, Any] = {"timeout": TIMEOUT}
        hooks: dict[str, Any] = {"request": [lambda r: r.headers.update(self._who()), runner.web.key_hook]}

        @runner.tool(**keyed)
        async def pay(n: int) -> object:  # noqa: ARG001
            return await self._send("keyed")

        @runner.tool(**keyed, approval=True)
        async def refund(n: int) -> object:  # noqa: ARG001
            return await self._send("keyed")

        @runner.tool(effect="reads")
        def look(n: int) -> int:
            return n

        @runner.tool(**once)
        async def send(n: int) -> object:  # noqa: ARG001
            return await self._send("once")

        @runner.tool(timeout=self._lasts + 1)
        async def mail(n: int, call: runner.Call) -> object:  # noqa: ARG001
            return await self._after(random.random() * self._lasts, "once", call)  # noqa: S311

        @runner.tool(timeout=QUICK)
        def post(n: int) -> object:  # noqa: ARG001
            time.sleep(random.random())  # noqa: S311 (no timeout ends a thread: only the check keeps it from sending)
            with self._sync(event_hooks=hooks) as client, runner.web.sending():
                return runner.web.result(client.post("/once"))

        async def gated(n: int, call: runner.Call) -> object:  # noqa: ARG001
            headers = {"idempotency-key": call.key, **self._who()}
            while not (await self._plain.post("/go", headers=headers)).json()["open"]:  # noqa: ASYNC110 (another process opens)
                await asyncio.sleep(0.05)
            return (await self._plain.post("/once", headers=headers)).json()

        gates = [runner.tool(timeout=8.0)(gated), runner.tool(name="gated_long", timeout=600.0)(gated)]

        @runner.tool(timeout=3.0)
        def freezes(n: int, call: runner.Call) -> object:  # noqa: ARG001
            if not self._is_open(call):
                os.kill(os.getpid(), signal.SIGSTOP)  # the test wakes it once the run is another's
            with self._sync(event_hooks=hooks) as client, runner.web.sending():
                return runner.web.result(client.post("/once"))

        @runner.tool(effect="reads")
        def slept(n: int, call: runner.Call) -> object:
            if not self._is_open(call):
                os.kill(os.getpid(), signal.SIGSTOP)
            return n

        for tool in (send, mail, post):
            tool.lookup(visible_within=WITHIN)(self._look)
        for tool in gates:
            tool.lookup(visible_within=0)(self._look)
        freezes.lookup(visible_within=0.2)(self._look)
        return [pay, refund, look, send, mail, post, *gates, freezes, slept]

    def agent(self) -> runner.Agent:
        """The agent; nothing limits how often it is resumed."""
        limits = runner.Limits(turns=100_000, resumes=100_000)
        return runner.Agent(name="clerk", model=Script(()), tools=self.tools(), limits=limits)

    def lead(self, *shapes: str) -> runner.Agent:
        """An agent whose child runs, side by side, are of these shapes."""
        calls = tool_calls(*(("clerk", {"task": shape}) for shape in shapes))
        model = ScriptedModel([calls, "All is done."])
        return runner.Agent(name="lead", model=model, tools=[runner.as_tool(self.agent())])
