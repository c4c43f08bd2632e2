"""A refund desk: an agent with inputs, resources, approvals, limits, a context policy and a typed output.

Its bank remembers keys; its till does not, and can be asked. Both write down what they did.
"""

import contextlib
import json
from collections import Counter
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import msgspec

import runner
from runner.testing import ScriptedModel, tool_calls

TASK = "The customer wants money back for the broken kettle."


class Customer(msgspec.Struct):
    """The inputs of a run."""

    id: str
    most: int = 5_000


class Refund(msgspec.Struct, tag="refund"):
    """One kind of answer."""

    order: str
    cents: Annotated[int, msgspec.Meta(gt=0)]


class Refusal(msgspec.Struct, tag="refusal"):
    """The other."""

    why: str


Answer = Refund | Refusal
ADA = Customer("c-7")


class Outside:
    """The bank, the post office and the till; `did` is everything that ever happened."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.did: list[str] = []
        self.paid: dict[str, str] = {}

    def pay(self, key: str, what: str) -> str:
        """Pay once for each key."""
        if key not in self.paid:
            self.did.append(f"pay {what}")
            self.paid[key] = f"paid {what}"
        return self.paid[key]


def effects(outside: Outside) -> dict[str, int]:
    """How often each thing happened; another amount is another payment."""
    return Counter("note" if line.startswith("note") else line for line in outside.did)


class Desk:
    """What the tools share: a connection to the outside."""

    def __init__(self, outside: Outside) -> None:
        self.outside = outside


@runner.tool(effect="reads", max_calls=4)
async def orders(call: runner.Call[Customer, Desk], year: int) -> list[dict[str, Any]]:
    """The customer's orders of a year."""
    return [{"order": f"{call.inputs.id}/{year}", "cents": 4_200, "what": "kettle " * 20}]


@runner.tool(effect="keyed", key_ttl=timedelta(days=1), approval=True, once_per=("order",))
async def refund(call: runner.Call[Customer, Desk], order: str, cents: int, reason: str = "broken") -> str:
    """Refund an order."""
    if cents > call.inputs.most:
        raise runner.ToolFailed(f"at most {call.inputs.most} cents")
    return call.resources.outside.pay(call.key, f"{order} {cents} {reason}")


@runner.tool(effect="non_idempotent")
async def note(call: runner.Call[Customer, Desk], text: str) -> str:
    """Write a note into the customer's file, which nobody can take back."""
    call.resources.outside.did.append(f"note {call.key} {text}")
    return "noted"


@note.lookup(visible_within=0)
async def noted(call: runner.Call[Customer, Desk]) -> runner.Found | runner.Missing:
    """Whether the note stands there."""
    there = any(line.startswith(f"note {call.key}") for line in call.resources.outside.did)
    return runner.Found("noted") if there else runner.Missing()


def instructions(customer: Customer) -> str:
    """What the agent is told."""
    return f"You serve customer {customer.id}. Refund at most {customer.most} cents."


def judge(answer: Answer) -> str | None:
    """Refuse an answer that the house would not stand for."""
    return "say which order" if isinstance(answer, Refund) and "/" not in answer.order else None


TOASTER = {"reason": "toaster", "cents": 20}
SCRIPT: list[Any] = [
    tool_calls(("orders", {"year": 2025}), ("orders", {"year": 2026})),
    tool_calls(("refund", {"order": "c-7/2026", "cents": 4_200}), ("note", {"text": "kettle"})),
    tool_calls(("refund", {"order": "c-7/cash", "cents": 10}), ("refund", {**TOASTER, "order": "c-7/always"})),
    tool_calls(("refund", {"order": "c-7/no", "cents": 30}), ("refund", {**TOASTER, "order": "c-7/again"})),
    tool_calls(("note", {"text": "toaster"}), ("refund", {"order": "c-7/late", "cents": 50})),
    tool_calls(("orders", {"year": 2024}), ("final_output", '{"output": {"type": "refusal", "why": "too soon"}}')),
    '{"type": "refund", "order": "kettle", "cents": 4200}',
    tool_calls(("final_output", '{"output": {"type": "refund", "order": "c-7/2026", "cents": 4200}}')),
]


def decide(question: runner.Question) -> runner.Answer | None:
    """What the owner of the desk says: every kind of answer once, and one question is left until it lapses."""
    given = json.loads(question.arguments)
    match given["order"]:
        case "c-7/2026":
            return runner.Answer("edit", "ada", arguments={**given, "cents": 2_100})
        case "c-7/cash":
            return runner.Answer("respond", "ada", "She has it in cash.")
        case "c-7/always":
            return runner.Answer("approve", "ada", always={"reason": TOASTER["reason"]})
        case "c-7/late":
            return None
        case _:
            return runner.Answer("refuse", "ada", "not ours")


def agent(outside: Outside, model: runner.Model | None = None) -> runner.Agent[Customer, Desk, Answer]:
    """The agent of one process."""

    @contextlib.asynccontextmanager
    async def desk() -> AsyncGenerator[Desk]:
        yield Desk(outside)

    return runner.Agent(
        name="refunds",
        model=model or ScriptedModel(SCRIPT),
        inputs=Customer,
        resources=desk,
        output=Answer,
        validate=judge,
        tools=[orders, refund, note],
        instructions=instructions,
        limits=runner.Limits(turns=20, dollars=2),
        context=runner.DropResults(keep=3),
        answer_within=timedelta(days=1),
    )
