"""The three protocols, as a server writes them: the same reply in each, whole or as a stream's events.

Replies are spelled as no serialiser of ours would spell them, with spaces, escapes, odd numbers and fields of the
future, so that whatever is rebuilt instead of kept is found out.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from runner.models.anthropic import Anthropic
from runner.models.openai import Chat, Responses

KEY = "sk-test-0123456789abcdef"


@dataclass(frozen=True)
class CannedReply:
    """A reply: what it says, thinks and calls (provider's id, tool, raw arguments), and why it ends."""

    text: str = ""
    thinking: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    stop: str = "stop"


def quoted(text: str) -> str:
    """A JSON string in pure ASCII: every other character is an escape."""
    return json.dumps(text)


def cut(text: str, size: int = 3) -> list[str]:
    """A text in pieces, as a stream has it."""
    return [text[i : i + size] for i in range(0, len(text), size)]


class Dialect(ABC):
    """One protocol. `pieces` are what the next request must repeat byte for byte."""

    name: str
    path: str

    def model(self, base_url: str, **options: Any) -> Any:
        """A model that speaks it to `base_url`."""
        return self.kind()(self.name + "-model", base_url=base_url + self.root, max_tokens=500, **options)

    root = ""

    @abstractmethod
    def kind(self) -> Callable[..., Any]:
        """The class of its models."""

    @abstractmethod
    def pieces(self, said: CannedReply) -> list[str]:
        """The parts of a reply, as they are spelled."""

    @abstractmethod
    def whole(self, said: CannedReply) -> bytes:
        """The body of a response."""

    @abstractmethod
    def stream(self, said: CannedReply) -> list[bytes]:
        """The events of a stream."""

    @abstractmethod
    def sent(self, body: Any) -> list[Any]:
        """The messages of a request's body, without what our own side always says first."""


def event(data: str, name: str = "") -> bytes:
    """One server-sent event."""
    return (f"event: {name}\n" if name else "").encode() + f"data: {data}\n\n".encode()


class AnthropicDialect(Dialect):
    """Messages."""

    name = "anthropic"
    path = "/v1/messages"
    STOPS: ClassVar = {
        "stop": "end_turn",
        "tool_calls": "tool_use",
        "length": "max_tokens",
        "refusal": "refusal",
        "pause": "pause_turn",
    }

    def kind(self) -> Callable[..., Any]:
        """See `Dialect`."""
        return Anthropic

    def pieces(self, said: CannedReply) -> list[str]:
        """See `Dialect`."""
        found = []
        if said.thinking:
            found.append(
                f'{{ "type":"thinking", "thinking" : {quoted(said.thinking)},"signature":"c2ln\\u002b==", "x":1e2}}'
            )
            found.append('{"type":"redacted_thinking","data":"ZGF0YQ=="}')
        if said.text:
            found.append(f'{{"type" : "text","text":{quoted(said.text)},"citations":null, "future":{{"a":[1.50]}}}}')
        found += [
            f'{{"type":"tool_use","id":{quoted(i)}, "name":{quoted(tool)},"input":{args} ,'
            '"caller":{"type":"direct"}}'
            for i, tool, args in said.calls
        ]
        return found

    def whole(self, said: CannedReply) -> bytes:
        """See `Dialect`."""
        blocks = " ,".join(self.pieces(said))
        return (
            f'{{"id":"msg_1","type":"message","role":"assistant", "model":"anthropic-model","content":[ {blocks}],'
            f'"stop_reason":"{self.STOPS[said.stop]}","stop_sequence":null,"usage":{{"input_tokens":100,'
            '"cache_read_input_tokens":20,"cache_creation_input_tokens":0,"output_tokens":30}, "future" : 1E3}'
        ).encode()

    def stream(self, said: CannedReply) -> list[bytes]:
        """See `Dialect`."""
        start = '{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"anthropic-model","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":100,"cache_read_input_tokens":20,"output_tokens":1}}}'  # noqa: E501 (an event is a line)
        events = [start, '{"type": "ping"}']
        index = 0

        def block(begin: str, deltas: list[str]) -> None:
            nonlocal index
            events.append(f'{{"type":"content_block_start","index":{index},"content_block":{begin}}}')
            events.extend(f'{{"type":"content_block_delta","index":{index},"delta":{delta}}}' for delta in deltas)
            events.append(f'{{"type":"content_block_stop","index":{index}}}')
            index += 1

        if said.thinking:
            deltas = [f'{{"type":"thinking_delta","thinking":{quoted(p)}}}' for p in cut(said.thinking)]
            block(
                '{"type":"thinking","thinking":"","signature":"","x":1e2}',
                [*deltas, '{"type":"signature_delta","signature":"c2ln+=="}'],
            )
            block('{"type":"redacted_thinking","data":"ZGF0YQ=="}', [])
        if said.text:
            block(
                '{"type":"text","text":"", "future" : 1.50}',
                [f'{{"type":"text_delta","text":{quoted(p)}}}' for p in cut(said.text)],
            )
        for i, tool, args in said.calls:
            deltas = [f'{{"type":"input_json_delta","partial_json":{quoted(p)}}}' for p in ["", *cut(args)]]
            block(f'{{"type":"tool_use","id":{quoted(i)},"name":{quoted(tool)},"input":{{}}}}', deltas)
        events.append(
            f'{{"type":"message_delta","delta":{{"stop_reason":"{self.STOPS[said.stop]}","stop_sequence":null}},'
            '"usage":{"output_tokens":30,"input_tokens":null}}'
        )
        events.append('{"type":"message_stop"}')
        return [event(data, json.loads(data)["type"]) for data in events]

    def sent(self, body: Any) -> list[Any]:
        """See `Dialect`."""
        return list(body["messages"])


class ResponsesDialect(Dialect):
    """Responses."""

    name = "responses"
    path = "/v1/responses"
    root = "/v1"

    def kind(self) -> Callable[..., Any]:
        """See `Dialect`."""
        return Responses

    def pieces(self, said: CannedReply) -> list[str]:
        """See `Dialect`."""
        found = []
        if said.thinking:
            found.append(
                f'{{"type":"reasoning","id":"rs", "summary":[{{"type":"summary_text","text":{quoted(said.thinking)}}}],'
                '"encrypted_content":"Z2Vo\\u002b==","future":1e2}'
            )
        if said.text and said.stop == "refusal":
            found.append(
                '{"type":"message","id":"msg_1","status":"completed","role":"assistant",'
                f'"content":[ {{"type":"refusal","refusal":{quoted(said.text)}}}]}}'
            )
        elif said.text:
            found.append(
                '{"type":"message","id":"msg_1","status":"completed","role":"assistant","phase":"commentary",'
                f'"content":[ {{"type":"output_text","text":{quoted(said.text)},"annotations":[],"future":[1.50]}}]}}'
            )
        found += [
            f'{{"type":"function_call","id":"fc_{n}","status":"completed", "call_id":{quoted(i)},"name":{quoted(tool)},'
            f'"arguments":{quoted(args)}}}'
            for n, (i, tool, args) in enumerate(said.calls)
        ]
        return found

    def _response(self, said: CannedReply, status: str) -> str:
        items = " , ".join(self.pieces(said))
        details = '{"reason":"max_output_tokens"}' if status == "incomplete" else "null"
        return (
            f'{{"id":"resp_1","object":"response","created_at":1.50,"status":"{status}","incomplete_details":{details},'
            f'"model":"responses-model", "output":[{items} ],"usage":{{"input_tokens":120,'
            '"input_tokens_details":{"cached_tokens":20},"output_tokens":30,"total_tokens":150}}'
        )

    def whole(self, said: CannedReply) -> bytes:
        """See `Dialect`."""
        return self._response(said, "incomplete" if said.stop == "length" else "completed").encode()

    def stream(self, said: CannedReply) -> list[bytes]:
        """See `Dialect`."""
        events = [
            (
                f'{{"type":"response.created","sequence_number":0,'
                f'"response":{self._response(CannedReply(), "in_progress")}}}'
            )
        ]
        kind = "response.refusal.delta" if said.stop == "refusal" else "response.output_text.delta"
        events += [f'{{"type":"{kind}","delta":{quoted(piece)}}}' for piece in cut(said.text)]
        for n, (_, tool, args) in enumerate(said.calls):
            item = f'{{"type":"function_call","id":"fc_{n}","name":{quoted(tool)},"arguments":""}}'
            events.append(f'{{"type":"response.output_item.added","output_index":{n},"item":{item}}}')
            events += [
                f'{{"type":"response.function_call_arguments.delta","output_index":{n},"delta":{quoted(p)}}}'
                for p in cut(args)
            ]
        end = "incomplete" if said.stop == "length" else "completed"
        events.append(f'{{"type":"response.{end}","response":{self.whole(said).decode()}}}')
        return [event(data, json.loads(data)["type"]) for data in events]

    def sent(self, body: Any) -> list[Any]:
        """See `Dialect`."""
        return list(body["input"])


class ChatDialect(Dialect):
    """Chat Completions."""

    name = "chat"
    path = "/v1/chat/completions"
    root = "/v1"
    STOPS: ClassVar = {"stop": "stop", "tool_calls": "tool_calls", "length": "length", "refusal": "content_filter"}

    def kind(self) -> Callable[..., Any]:
        """See `Dialect`."""
        return Chat

    def pieces(self, said: CannedReply) -> list[str]:
        """See `Dialect`."""
        fields = ['"role":"assistant"', f'"content" : {quoted(said.text) if said.text else "null"}', '"refusal":null']
        if said.thinking:
            fields.append(f'"reasoning_content":{quoted(said.thinking)} , "future":1e2')
        calls = ",".join(
            f'{{"id":{quoted(i)},"type":"function", "function":{{"name":{quoted(tool)},"arguments":{quoted(args)}}}}}'
            for i, tool, args in said.calls
        )
        if calls:
            fields.append(f'"tool_calls":[{calls} ]')
        return ["{" + ", ".join(fields) + "}"]

    def whole(self, said: CannedReply) -> bytes:
        """See `Dialect`."""
        return (
            '{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"chat-model","choices":[ {"index":0,'
            f'"message":{self.pieces(said)[0]},"logprobs":null,"finish_reason":"{self.STOPS[said.stop]}"}}],'
            '"usage":{"prompt_tokens":120,"completion_tokens":30,"total_tokens":150,"prompt_tokens_details":{"cached_tokens":20}}}'
        ).encode()

    def stream(self, said: CannedReply) -> list[bytes]:
        """See `Dialect`."""

        def chunk(delta: str, reason: str = "null") -> str:
            return (
                '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"chat-model","usage":null,'
                f'"choices":[{{"index":0,"delta":{delta},"finish_reason":{reason}}}]}}'
            )

        events = [chunk('{"role":"assistant","content":null,"refusal":null}')]
        events += [chunk(f'{{"reasoning_content":{quoted(piece)}}}') for piece in cut(said.thinking)]
        events += [chunk(f'{{"content":{quoted(piece)}}}') for piece in cut(said.text)]
        for n, (i, tool, args) in enumerate(said.calls):
            begin = f'"id":{quoted(i)},"type":"function","function":{{"name":{quoted(tool)},"arguments":""}}'
            events.append(chunk(f'{{"tool_calls":[{{"index":{n},{begin}}}]}}'))
            events += [
                chunk(f'{{"tool_calls":[{{"index":{n},"function":{{"arguments":{quoted(p)}}}}}]}}') for p in cut(args)
            ]
        events.append(chunk("{}", f'"{self.STOPS[said.stop]}"'))
        events.append(
            '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"chat-model","choices":[],'
            '"usage":{"prompt_tokens":120,"completion_tokens":30,"total_tokens":150,"prompt_tokens_details":{"cached_tokens":20}}}'
        )
        return [event(data) for data in [*events, "[DONE]"]]

    def sent(self, body: Any) -> list[Any]:
        """See `Dialect`."""
        return list(body["messages"])


DIALECTS = {dialect.name: dialect for dialect in (AnthropicDialect(), ResponsesDialect(), ChatDialect())}
