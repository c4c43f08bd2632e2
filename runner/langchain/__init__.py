"""LangChain: agents of `create_agent` keep LangGraph's loop, and their runs are durable. Needs `refold[langchain]`.

    agent = create_agent(model, tools, middleware=runner.langchain.middleware(*mine, tools={"mail": "idempotent"}))
    async with runner.durable("Pay invoice 7.", runs="runs", run="payer-7"):
        result = await agent.ainvoke({"messages": [("user", "Pay invoice 7.")]})

How its loop maps on a run's phases:

1. A request to the model is an ask. The middleware for it is the innermost: what yours make of a request is made
   before it, and of a reply after it, in each life again. So is what LangChain makes of a reply: structured output.
2. A tool is a call, declared in `tools=` or in its metadata. The middleware for it is the outermost: what yours retry
   belongs to one attempt. A `ToolMessage` with the status error says that the attempt did nothing.
3. `interrupt()` in a tool takes the call back: the attempt did nothing, and the call is still due. So does an error of
   a tool that only reads, which LangGraph raises: the next life calls it again.
   What a reviewer edits is what the log says ran; a call that becomes one of another tool is made instead, as one of
   the program's own. Refused: in the interrupt mode `per_call` an edit of a call that acts; an edit of a call that
   needs a yes of the run, or that was tried with other arguments.
4. What LangChain answers by itself (calls of structured output, calls that a person rejected) is a call that the
   program did not run.
5. The last message, or the structured response, is the run's answer. An agent that was interrupted has none: its run
   waits, and the next `invoke` in it goes on.
6. With a checkpointer, LangGraph remembers by itself what it did, and the log is only read from there on. One run is
   one `invoke`, with the `invoke`s that resume it: a run has an answer, a cost and limits, a thread has many of each.
7. In a tool, an agent's calls belong to the tool's attempt, unless the tool opens a run by `runner.durable` itself.

A middleware that calls a model by itself, as one that summarises does, is no request of the agent: it pays again in
each life. Updates of the state come back as JSON, and an artifact that JSON does not hold as None.
"""

from collections.abc import Mapping
from typing import Any

from runner.adapters import Declarations
from runner.langchain._middleware import Asks, Calls

__all__ = ["middleware"]


def middleware(*others: Any, tools: Mapping[str, Any] | None = None) -> list[Any]:
    """The middleware of an agent whose runs are durable inside `runner.durable`; anywhere else it is as before.

    Args:
        others: The agent's other middleware, in its order.
        tools: For a tool's name, the name of an effect, or the options of `runner.tool` with `lookup` and
            `visible_within`. It goes before the tool's metadata, which may hold the same options. A tool without any
            is `non_idempotent`: after a crash in it a person is asked.
    """
    terms = Declarations(tools)
    per_call = any(getattr(other, "interrupt_mode", None) == "per_call" for other in others)
    return [Calls(terms), *others, Asks(terms, reviews_calls=per_call)]
