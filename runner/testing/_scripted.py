"""A scripted model for tests and demonstrations.

Its reply depends on the request alone, never on how often it was asked. So it can be made anew in another process after
a crash, and it goes on at the turn that the log says.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from replay.messages import CostBound, Reply, ToolCall, Usage
from runner import BadAgent, ModelError, Request

Scripted = Reply | str | Callable[[Request], Reply] | BaseException


def tool_calls(*wanted: tuple[str, dict[str, Any] | str], text: str = "", dollars: float = 0.001) -> Reply:
    """Make a reply that calls tools.

    Args:
        wanted: A tool's name and its arguments, as a dictionary or as raw text, for each call.
        text: The text of the reply.
        dollars: What the reply costs.
    """
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
    """A model that answers turn n with `script[n - 1]`. After the end of the script it raises a permanent `ModelError`.

    Attributes:
        script: For each turn a reply, a text (the final answer), a function of the request, or an exception to raise.
        summaries: The answers to requests for summaries, in order; the last one repeats.
        name: The model's name.
        most: The bound of every request.
        asked: How often this object was asked.
    """

    script: Sequence[Scripted]
    summaries: Sequence[str] = ("A summary.",)
    name: str = "scripted"
    most: CostBound = field(default_factory=lambda: CostBound(input_tokens=1000, output_tokens=100, dollars=0.01))
    asked: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.script, str):
            raise BadAgent(f"the script is the text {self.script!r:.60}: write a list of what is said in each turn")

    def bound(self, request: Request) -> CostBound:  # noqa: ARG002 (a model's bound is of a request)
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
        if isinstance(wanted, Reply):
            return wanted
        if not callable(wanted):
            raise ModelError(f"turn {request.turn} of the script is {wanted!r:.60}, no reply", transient=False)
        return wanted(request)
