"""A scripted model: public, for tests and demonstrations (spec row 32).

Which reply it gives depends on the request alone, never on how often it was asked, so it may be killed, made anew in
another process, and goes on where the log says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from replay import Bound, Reply, ToolCall, Usage
from runner._model import Request
from runner.errors import ModelError

Scripted = Reply | str | Callable[[Request], Reply] | BaseException


def calls(*wanted: tuple[str, dict[str, Any] | str], text: str = "", dollars: float = 0.001) -> Reply:
    """A reply that calls tools: pairs of a tool's name and its arguments, as a dictionary or as raw text."""
    return Reply(
        text=text,
        calls=tuple(
            ToolCall(tool=name, arguments=given if isinstance(given, str) else json.dumps(given), provider_id=f"c{i}")
            for i, (name, given) in enumerate(wanted)
        ),
        usage=Usage(input_tokens=100, output_tokens=20),
        dollars=dollars,
        stop="tool_calls",
    )


@dataclass
class ScriptedModel:
    """A model whose turn n is answered by `script[n - 1]`.

    That is a reply, a text (the final answer), a function of the request, or an exception to raise. `summaries` answer
    requests for summaries in their order. `asked` counts what this object was asked. Asked beyond its script it raises
    a permanent `ModelError`.
    """

    script: Sequence[Scripted]
    summaries: Sequence[str] = ("A summary.",)
    name: str = "scripted"
    most: Bound = field(default_factory=lambda: Bound(input_tokens=1000, output_tokens=100, dollars=0.01))
    asked: int = 0

    def bound(self, request: Request) -> Bound:  # noqa: ARG002 (a model's bound is of a request)
        """The same for every request: `most`."""
        return self.most

    async def ask(self, request: Request) -> Reply:
        """The reply for this request's turn."""
        self.asked += 1
        if request.purpose == "summary":
            return Reply(text=self.summaries[min(request.turn, len(self.summaries)) - 1], usage=Usage(input_tokens=100))
        if request.turn > len(self.script):
            message = f"the script has {len(self.script)} replies and was asked for turn {request.turn}"
            raise ModelError(message, transient=False)
        wanted = self.script[request.turn - 1]
        if isinstance(wanted, BaseException):
            raise wanted
        if isinstance(wanted, str):
            return Reply(text=wanted, usage=Usage(input_tokens=100, output_tokens=20), dollars=0.001)
        return wanted if isinstance(wanted, Reply) else wanted(request)
