"""pydantic-ai: an agent keeps its own loop, and its runs are durable. It needs the extra `refold[pydantic-ai]`.

    agent = Agent(model, name="payer", capabilities=[Refold(tools={"mail": {"effect": "idempotent"}})])
    async with runner.durable("Pay invoice 7.", runs="runs", run="payer-7"):
        result = await agent.run("Pay invoice 7.")

How its loop maps on a run's phases:

1. A request to the model, streamed or not, and a compaction of the messages is an ask. Its reply is saved first.
2. A tool of a function, MCP or dynamic toolset is a call, declared in `Refold(tools=...)` or in the tool's metadata.
   `ModelRetry` and the like say that the attempt did nothing: the call has failed, in the framework's own words.
   Another error of a tool that only reads is raised, and the next life calls it again.
3. What pydantic-ai answers by itself (output tools, arguments that do not fit) is a call that the program did not run.
4. Lists of tools, validators, handlers of events and operations of capabilities are steps: they may run again.
5. `requires_approval=True` asks the run's question. An approved call that had deferred itself is a call of its own.
6. A call that was ordered before this run (message history) is adopted. An agent inside a tool is a child run.
7. The result of the last `agent.run` is the run's answer.
"""

from runner.pydantic_ai._capability import Refold

__all__ = ["Refold"]
