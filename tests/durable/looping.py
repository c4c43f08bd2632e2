"""A framework in forty lines: an agent's loop of its own, which knows nothing of a run but the seam it calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import runner
from replay.values import Digests
from runner.adapters import Durable, declared

Tools = Mapping[str, Callable[[runner.Call], object]]


def digests(messages: str) -> Digests:
    """The digests of a request with these messages."""
    return Digests(instructions="i", tools="t", messages=messages, parameters="p")


@dataclass
class Framework:
    """Asks its model until a reply has no calls. `replies` are the model's, `asked` how often it was asked."""

    replies: Sequence[runner.Reply]
    tools: Tools
    terms: Mapping[str, Any] = field(default_factory=dict)
    asked: int = 0
    seen: list[str] = field(default_factory=list)

    async def run(self, run: Durable, prompt: str) -> str:
        """Go from a prompt to an answer."""
        messages: list[Any] = [prompt]
        known = [declared(name, "", {}, self.terms.get(name)) for name in self.tools]
        while True:
            turn = sum(isinstance(message, runner.Reply) for message in messages)

            async def ask(turn: int = turn) -> runner.Reply:
                self.asked += 1
                return self.replies[turn]

            digest = run.chain(messages, lambda message: repr(message).encode())
            reply = await run.ask(digests(digest), runner.CostBound(dollars=0.0), ask, tools=known)
            messages.append(reply)
            if not reply.calls:
                return reply.text
            calls = (run.call(call.provider_id, call.tool, self.tools[call.tool]) for call in reply.calls)
            results = await asyncio.gather(*calls)
            self.seen += [result.text for result in results]
            messages.append(json.dumps([result.text for result in results]))
