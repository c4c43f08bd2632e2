"""One life under langgraph: a graph of a model and a tool, with `durability="sync"` and its SQLite checkpoints."""

from __future__ import annotations

from typing import TypedDict

from effect import PLACE, act
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph


class UserMessage(TypedDict):
    """The state of the graph."""

    said: str


graph = StateGraph(UserMessage)
graph.add_node("model", lambda _: {"said": "call the tool"})
graph.add_node("tool", lambda _: {"said": act()})
graph.add_edge(START, "model")
graph.add_edge("model", "tool")
graph.add_edge("tool", END)
with SqliteSaver.from_conn_string(str(PLACE / "checkpoints.sqlite")) as saver:
    thread = {"configurable": {"thread_id": "r"}}
    begins = saver.get_tuple(thread) is None  # None as input carries an interrupted thread on
    end = graph.compile(checkpointer=saver).invoke({"said": ""} if begins else None, thread, durability="sync")
print(end["said"])
