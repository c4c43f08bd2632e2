"""Exactly what is sent: bodies, headers, the user's parameters, and what another vendor wrote."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

import runner
from replay.messages import AssistantMessage, Reply, Result, ToolCall, ToolResults, UserMessage
from runner import Request
from runner._agent.model import ToolSpec
from runner.models.anthropic import Anthropic
from runner.models.openai import Chat, Responses
from tests.models import cases
from tests.models.dialects import DIALECTS, KEY, CannedReply
from tests.models.server import Answer, Server

SCHEMA = {"type": "object", "properties": {"cents": {"type": "integer"}}, "required": ["cents"]}
CALLS = (
    ToolCall(tool="pay", arguments='{"cents": 5e0}', provider_id="c1", id="1.0"),
    ToolCall(tool="pay", arguments='{"cents": 5', provider_id="c1", id="1.1"),
)
RESULTS = (
    Result(call="1.0", tool="pay", provider_id="c1", how="ran", text="paid"),
    Result(call="1.1", tool="pay", provider_id="c1", how="invalid", text="no JSON"),
)
CONVERSATION = (
    UserMessage("Pay."),
    AssistantMessage(Reply(text="Paying.", calls=CALLS, raw='{"content":"of another vendor"}')),
    UserMessage("A file was accepted."),
    ToolResults(RESULTS),
)


def request(messages: Any = CONVERSATION, parameters: Mapping[str, Any] | None = None, **options: Any) -> Request:
    """An ask."""
    given: dict[str, Any] = {"purpose": "turn", "turn": 2, "n": 1, "instructions": "Be brief."}
    given |= {"tools": (ToolSpec("pay", "Pay.", SCHEMA),), "messages": messages, "parameters": parameters or {}}
    return Request(run="r", at=cases.NOON, **(given | options))


def sent(name: str, asked: Request, **options: Any) -> Any:
    """The body that a dialect's model sends for `asked`."""
    dialect = DIALECTS[name]
    with Server(Answer(dialect.whole(CannedReply(text="Done.")))) as server:
        assert asyncio.run(dialect.model(server.url, **options).ask(asked)).text == "Done."
        cases.lawful(dialect, server.seen[0])
        assert (server.seen[0].method, server.seen[0].path) == ("POST", dialect.path)
        return server.seen[0].json


@pytest.mark.parametrize("name", DIALECTS)
def test_the_schema_of_an_answer_is_sent_beside_what_the_parameters_say(name: str) -> None:
    """Where each vendor wants it, and with a turn only."""
    schema = {"type": "object", "properties": {"cents": {"type": "integer"}}}
    parameters: dict[str, dict[str, Any]] = {
        "anthropic": {"output_config": {"effort": "low"}},
        "responses": {"text": {"verbosity": "low"}},
    }
    said = sent(name, request(output=schema, parameters=parameters.get(name, {})))
    held: dict[str, Any] = {
        "anthropic": {"effort": "low", "format": {"type": "json_schema", "schema": schema}},
        "responses": {
            "verbosity": "low",
            "format": {"type": "json_schema", "name": "output", "strict": True, "schema": schema},
        },
        "chat": {"type": "json_schema", "json_schema": {"name": "output", "strict": True, "schema": schema}},
    }
    fields = {"anthropic": "output_config", "responses": "text", "chat": "response_format"}
    assert said[fields[name]] == held[name]


def test_anthropic_is_sent_exactly_this() -> None:
    """Results stand first and together; ids that a provider would refuse are made anew on both sides."""
    assert sent("anthropic", request()) == {
        "model": "anthropic-model",
        "max_tokens": 500,
        "system": "Be brief.",
        "tools": [{"name": "pay", "description": "Pay.", "input_schema": SCHEMA}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Pay."}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Paying."},
                    {"type": "tool_use", "id": "call_1_0", "name": "pay", "input": {"cents": 5}},
                    {"type": "tool_use", "id": "call_1_1", "name": "pay", "input": {"INVALID_JSON": '{"cents": 5'}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call_1_0", "content": "paid", "is_error": False},
                    {"type": "tool_result", "tool_use_id": "call_1_1", "content": "no JSON", "is_error": True},
                    {"type": "text", "text": "A file was accepted."},
                ],
            },
        ],
    }


def test_responses_is_sent_exactly_this() -> None:
    """Nothing is stored at the provider's, and reasoning comes in a form that can be sent back."""
    assert sent("responses", request()) == {
        "model": "responses-model",
        "max_output_tokens": 500,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "instructions": "Be brief.",
        "tools": [{"type": "function", "name": "pay", "description": "Pay.", "parameters": SCHEMA, "strict": False}],
        "input": [
            {"role": "user", "content": "Pay."},
            {"role": "assistant", "content": "Paying."},
            {"type": "function_call", "call_id": "call_1_0", "name": "pay", "arguments": '{"cents": 5e0}'},
            {"type": "function_call", "call_id": "call_1_1", "name": "pay", "arguments": '{"cents": 5'},
            {"type": "function_call_output", "call_id": "call_1_0", "output": "paid"},
            {"type": "function_call_output", "call_id": "call_1_1", "output": "no JSON"},
            {"role": "user", "content": "A file was accepted."},
        ],
    }


def test_chat_is_sent_exactly_this() -> None:
    """A compatible server knows `max_tokens`."""
    calls = [
        {"id": f"call_1_{n}", "type": "function", "function": {"name": "pay", "arguments": call.arguments}}
        for n, call in enumerate(CALLS)
    ]
    assert sent("chat", request()) == {
        "model": "chat-model",
        "max_tokens": 500,
        "tools": [{"type": "function", "function": {"name": "pay", "description": "Pay.", "parameters": SCHEMA}}],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Pay."},
            {"role": "assistant", "content": "Paying.", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "call_1_0", "content": "paid"},
            {"role": "tool", "tool_call_id": "call_1_1", "content": "no JSON"},
            {"role": "user", "content": "A file was accepted."},
        ],
    }


@pytest.mark.parametrize("name", DIALECTS)
def test_an_ask_without_tools_and_instructions_names_neither(name: str) -> None:
    """An empty list of tools is refused by some servers, an empty system prompt by others."""
    body = sent(name, request([UserMessage("Hi.")], instructions="", tools=()))
    assert not body.keys() & {"tools", "system", "instructions"}
    assert len(DIALECTS[name].sent(body)) == 1


@pytest.mark.parametrize("name", DIALECTS)
def test_the_users_parameters_pass_through_and_add_to_the_tools(name: str) -> None:
    """A vendor's own tool stands after the agent's; a limit of the user's is sent instead, and bounds the ask."""
    tool = {"anthropic": {"type": "web_search_20250305", "name": "web_search"}}.get(name, {"type": "web_search"})
    limit = {"anthropic": "max_tokens", "responses": "max_output_tokens", "chat": "max_completion_tokens"}[name]
    extra = {"metadata": {"user_id": "u"}, "tools": [tool] if name != "chat" else [], limit: 77}
    asked = request(parameters=extra)
    body = sent(name, asked)
    assert body["metadata"] == {"user_id": "u"}
    assert body[limit] == 77
    assert ("max_tokens" in body) == (limit == "max_tokens")
    assert body["tools"][1:] == extra["tools"]
    assert DIALECTS[name].model("http://x").bound(asked).output_tokens == 77


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"model": "other", "stream": True}, "model, stream"),
        ({"tools": "all"}, "tools is no list"),
        ({"top_k": object()}, "can't be written as JSON"),
    ],
)
def test_parameters_that_can_not_be_sent_are_refused_before_a_run_exists(
    name: str, parameters: dict[str, Any], says: str, tmp_path: Path
) -> None:
    """A run that can never ask must not be created."""
    if "top_k" in parameters:
        asked = request(parameters=parameters)
        with pytest.raises(runner.BadAgent, match=says):
            DIALECTS[name].model("http://x").bound(asked)
        return
    with pytest.raises(runner.BadAgent, match=says):
        cases.start(DIALECTS[name].model("http://x"), tmp_path, parameters=parameters)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("limit", [None, "many", True, -1])
def test_a_limit_of_output_that_is_no_number_of_tokens_is_refused(name: str, limit: Any) -> None:
    """Without it an ask has no bound."""
    made = DIALECTS[name].model("http://x")
    with pytest.raises(runner.BadAgent, match="is no number of tokens"):
        made.bound(request(parameters={made.limits[0]: limit}))


@pytest.mark.parametrize("name", DIALECTS)
def test_a_summary_is_asked_of_a_text_that_needs_no_tools(name: str) -> None:
    """A provider refuses calls without their tools; a text with both in it is refused by none."""
    asked = request(
        purpose="summary",
        tools=(),
        parameters={"tools": [{"type": "x"}], "tool_choice": "auto", "metadata": {"user_id": "u"}},
    )
    body = sent(name, asked)
    assert not body.keys() & {"tools", "tool_choice"}
    assert "metadata" in body
    (said,) = [m for m in DIALECTS[name].sent(body) if m["role"] == "user"]
    text = said["content"] if isinstance(said["content"], str) else said["content"][0]["text"]
    assert text.splitlines()[:2] == ["[user]", "Pay."]
    for part in ("[call 1.0 of pay]", '{"cents": 5e0}', "[result of call 1.1 of pay: invalid]", "no JSON"):
        assert part in text


@pytest.mark.parametrize(("name", "other"), [(a, b) for a in DIALECTS for b in DIALECTS if a != b])
def test_a_run_goes_on_with_another_vendor(name: str, other: str, tmp_path: Path) -> None:
    """What one wrote is told to the other by its text and its calls, answered under the same ids."""
    said = CannedReply(text="Paying.", thinking="Hm.", calls=(("c1", "pay", '{"cents": 5}'),), stop="tool_calls")
    with Server(Answer(DIALECTS[name].whole(said))) as server, pytest.raises(runner.errors.ModelUnavailable):
        cases.start(DIALECTS[name].model(server.url), tmp_path)
    with Server(Answer(DIALECTS[other].whole(CannedReply(text="Done.")))) as server:
        assert cases.resume(DIALECTS[other].model(server.url), tmp_path).answer == "Done."
        cases.lawful(DIALECTS[other], server.seen[0])
        text = server.seen[0].body.decode()
    assert cases.acts(tmp_path) == ["5"]
    assert "Paying." in text
    assert text.count('"c1"') == 2
    assert "encrypted" not in json.dumps(DIALECTS[other].sent(server.seen[0].json))


@pytest.mark.parametrize("name", DIALECTS)
def test_one_attempt_is_one_request_with_the_key_from_the_environment(name: str) -> None:
    """The SDK's own retries are off, whoever made the client."""
    made = {
        "anthropic": lambda url: Anthropic("m", client=anthropic.AsyncAnthropic(base_url=url, max_retries=5)),
        "responses": lambda url: Responses("m", client=openai.AsyncOpenAI(base_url=url + "/v1", max_retries=5)),
        "chat": lambda url: Chat("m", client=openai.AsyncOpenAI(base_url=url + "/v1", max_retries=5)),
    }[name]
    for model in (made, DIALECTS[name].model):
        with Server(Answer(b"{}", 500), Answer(b"{}", 500)) as server:
            with pytest.raises(runner.ModelError) as error:
                asyncio.run(model(server.url).ask(request()))
            assert error.value.transient
            (seen,) = server.seen
        assert seen.headers["authorization"] == f"Bearer {KEY}"
        assert seen.headers["content-type"] == "application/json"
        assert seen.headers["x-stainless-retry-count"] == "0"
        assert ("anthropic-version" in seen.headers) == (name == "anthropic")


def test_a_client_that_rewrites_requests_is_given_the_values() -> None:
    """Azure's puts the model into the address, which it can't do with bytes."""
    dialect = DIALECTS["chat"]
    with Server(Answer(dialect.whole(CannedReply(text="Done.")))) as server:
        client = openai.AsyncAzureOpenAI(azure_endpoint=server.url, api_version="2026-01-01", api_key=KEY)
        assert asyncio.run(Chat("deployed", client=client, max_tokens=9).ask(request())).text == "Done."
        assert server.seen[0].path == "/openai/deployments/deployed/chat/completions?api-version=2026-01-01"
        assert server.seen[0].json["messages"][1] == {"role": "user", "content": "Pay."}


def test_openai_itself_is_sent_the_newer_name_of_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its reasoning models refuse the older one."""
    monkeypatch.delenv("OPENAI_BASE_URL")
    asked = request()
    assert set(Chat("gpt-6-sol")._fields(asked)) & {"max_tokens", "max_completion_tokens"} == {"max_completion_tokens"}


def test_a_reply_that_said_nothing_is_not_sent_back() -> None:
    """Providers refuse a message without content."""
    empty = AssistantMessage(Reply(text=""))
    for name, dialect in DIALECTS.items():
        said = dialect.sent(sent(name, request([UserMessage("One."), empty, UserMessage("Two.")])))
        assert all(message["role"] != "assistant" for message in said)
