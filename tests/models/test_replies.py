"""What a reply becomes, whole and streamed, and that it goes back as it came."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import runner
from replay.events import ResultRecorded
from replay.messages import Usage
from tests.models import cases
from tests.models.dialects import DIALECTS, CannedReply, event
from tests.models.server import SSE, Answer, Server
from tests.models.test_requests import request

LAST = CannedReply(text="Done.")
PARALLEL = (("c1", "pay", '{"cents": 5}'), ("", "due", '{ "who" : "\\u00e9" }'), ("c1", "pay", '{"cents": 7}'))
KINDS = {
    "text": CannedReply(text='Hello é 😀 \u2028 \x00 \\ " end'),
    "thinking": CannedReply(text="Hm.", thinking="é 😀 I think"),
    "calls": CannedReply(text="Paying.", thinking="Hm.", calls=PARALLEL, stop="tool_calls"),
    "calls alone": CannedReply(calls=PARALLEL, stop="tool_calls"),
    "length": CannedReply(text="Cut o", stop="length"),
    "length in calls": CannedReply(text="x", calls=PARALLEL[:1], stop="length"),
    "refusal": CannedReply(text="I will not.", stop="refusal"),
}


def asked(name: str, said: CannedReply, *, streamed: bool, **options: Any) -> runner.Reply:
    """The reply that a server's answer becomes."""
    dialect = DIALECTS[name]
    with Server(*cases.answers(dialect, [said], streamed=streamed)) as server:
        reply: runner.Reply = asyncio.run(cases.model(dialect, server.url, streamed=streamed, **options).ask(request()))
        return reply


@pytest.mark.parametrize(("name", "streamed"), cases.MODES, ids=cases.IDS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_reply_is_read_for_what_it_says(name: str, streamed: bool, kind: str) -> None:
    """The text, the calls with their raw arguments and ids, why it ended, and what it used."""
    said = KINDS[kind]
    reply = asked(name, said, streamed=streamed)
    assert reply.text == said.text
    assert reply.stop == said.stop
    assert [(c.provider_id, c.tool, c.arguments) for c in reply.calls] == list(said.calls)
    assert reply.usage == Usage(input_tokens=120, output_tokens=30, cache_read_tokens=20)
    assert reply.model == f"{name}-model"
    assert (reply.dollars, reply.lossy) == (None, False)


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("kind", KINDS)
def test_raw_in_is_raw_out_byte_for_byte(name: str, kind: str, tmp_path: Path) -> None:
    """Every part of a reply is in the next request exactly as it was spelled, in this process and after a resume."""
    said = KINDS[kind]
    dialect = DIALECTS[name]
    body = dialect.whole(said)
    more = [LAST] if said.calls or said.stop == "length" else []  # one that was cut off is asked again
    with Server(*cases.answers(dialect, [said, *more], streamed=False)) as server:
        cases.start(dialect.model(server.url), tmp_path)
    assert cases.replies(tmp_path)[0].raw.encode() == body
    after = Server(*cases.answers(dialect, [LAST], streamed=False))
    with after:
        cases.start(dialect.model(after.url), tmp_path, "s", after="r")
    for seen in [*server.seen[1:], *after.seen]:
        cases.lawful(dialect, seen)
        for piece in dialect.pieces(said):
            assert piece.encode() in seen.body


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_streamed_reply_goes_back_with_all_that_its_pieces_said(name: str, kind: str, tmp_path: Path) -> None:
    """Put together once and saved, it is the same bytes in every request that follows."""
    said = KINDS[kind]
    dialect = DIALECTS[name]
    more = [said, LAST] if said.calls else [LAST] if said.stop == "length" else []
    with Server(*cases.answers(dialect, [said, *more], streamed=True)) as server:
        cases.start(cases.model(dialect, server.url, streamed=True), tmp_path)
    with Server(*cases.answers(dialect, [LAST], streamed=True)) as after:
        cases.start(cases.model(dialect, after.url, streamed=True), tmp_path, "s", after="r")
    for seen in [*server.seen, *after.seen]:
        cases.lawful(dialect, seen)
    first = DIALECTS[name].sent(json.loads(after.seen[0].body))
    for seen in server.seen[1:]:
        told = dialect.sent(seen.json)
        assert told == first[: len(told)]
    raw = cases.replies(tmp_path)[0].raw
    for field in ("signature", "redacted_thinking", "encrypted_content", "reasoning_content"):
        if field in raw:
            assert field in after.seen[0].body.decode()


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(
    "arguments", ['{"cents": 5', '{"cents": NaN}', "[1]", "", "pay 5", '{"a":"\\ud83d"}', '{"a":1,"a":2}']
)
def test_streamed_arguments_are_the_raw_text(name: str, arguments: str, tmp_path: Path) -> None:
    """A helper that completes what was cut off would run a call that the model did not write."""
    said = CannedReply(calls=(("c1", "pay", arguments),), stop="tool_calls")
    dialect = DIALECTS[name]
    with Server(*cases.answers(dialect, [said, LAST], streamed=True)) as server:
        assert cases.start(cases.model(dialect, server.url, streamed=True), tmp_path).answer == "Done."
        cases.lawful(dialect, server.seen[1])
        told = server.seen[1].body
    (call,) = cases.replies(tmp_path)[0].calls
    assert call.arguments == (arguments or ("{}" if name == "anthropic" else ""))
    assert cases.acts(tmp_path) == []
    (result,) = cases.events(tmp_path, ResultRecorded)
    assert result.how == "invalid"
    if name != "anthropic":
        assert json.dumps(arguments, ensure_ascii=False).encode() in told
    elif arguments in ('{"cents": 5', '{"cents": NaN}', "[1]", "pay 5"):
        assert json.dumps({"INVALID_JSON": arguments}, separators=(",", ":")).encode() in told


@pytest.mark.parametrize("name", DIALECTS)
def test_calls_of_a_reply_that_was_refused_or_cut_at_its_length_are_not_run(name: str, tmp_path: Path) -> None:
    """What a provider stopped the model from saying, or had no room for, is not what the model meant."""
    dialect = DIALECTS[name]
    cut = CannedReply(calls=PARALLEL[:1], stop="length")
    with Server(*cases.answers(dialect, [cut, LAST], streamed=False)) as server:
        cases.start(dialect.model(server.url), tmp_path)
    (result,) = cases.events(tmp_path, ResultRecorded)
    assert (result.how, "length limit" in result.text) == ("invalid", True)
    body = dialect.whole(CannedReply(text="I w", calls=PARALLEL[:1], stop="length"))
    for before, now in (
        (b'"max_tokens"', b'"refusal"'),
        (b'"max_output_tokens"', b'"content_filter"'),
        (b'"length"', b'"content_filter"'),
    ):
        body = body.replace(before, now)
    with Server(Answer(body)) as server:
        came = cases.start(dialect.model(server.url), tmp_path, "refused")
    assert (came.answer, came.state.stop) == ("I w", "refusal")
    with Server(*cases.answers(dialect, [LAST], streamed=False)) as server:
        cases.start(dialect.model(server.url), tmp_path, "on", after="refused")
        cases.lawful(dialect, server.seen[0])
        assert b"c1" not in server.seen[0].body
        assert b"I w" in server.seen[0].body
    assert cases.acts(tmp_path) == []


def test_a_turn_that_the_provider_only_paused_goes_back_as_it_is(tmp_path: Path) -> None:
    """The next ask ends with it, and nothing of ours in between."""
    dialect = DIALECTS["anthropic"]
    block = '{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query" : "x"}}'
    paused = (
        dialect.whole(CannedReply(text="Looking.", stop="pause"))
        .replace(b" ],", b"," + block.encode() + b" ],")
        .replace(b"]} ],", b"]}," + block.encode() + b" ],")
    )
    body = (
        paused
        if block.encode() in paused
        else paused.replace(b'],"stop_reason"', b"," + block.encode() + b'],"stop_reason"')
    )
    with Server(Answer(body), Answer(dialect.whole(LAST))) as server:
        assert cases.start(dialect.model(server.url), tmp_path).answer == "Done."
        cases.lawful(dialect, server.seen[1])
        last = server.seen[1].json["messages"][-1]
    assert (last["role"], len(last["content"])) == ("assistant", 2)
    assert block.encode() in server.seen[1].body


@pytest.mark.parametrize(("name", "streamed"), cases.MODES, ids=cases.IDS)
def test_whoever_listens_hears_the_text_that_a_server_streams(name: str, streamed: bool) -> None:
    """One that gives the reply whole all the same is understood, too."""
    heard: list[str] = []
    dialect = DIALECTS[name]
    said = KINDS["text"]
    with Server(*cases.answers(dialect, [said], streamed=streamed)) as server:
        asked = request(heard=lambda text, *_: heard.append(text))
        reply = asyncio.run(dialect.model(server.url).ask(asked))
    assert reply.text == said.text
    assert "".join(heard).encode("utf-16", "surrogatepass").decode("utf-16") == (said.text if streamed else "")


@pytest.mark.parametrize("name", DIALECTS)
def test_whoever_follows_a_run_hears_text_and_arguments_and_the_bound_is_the_same(name: str) -> None:
    """A model that nobody listened to when it was made streams for a request that somebody listens to."""
    heard: list[tuple[int | None, str, str]] = []

    def hear(text: str, call: int | None = None, tool: str = "") -> None:
        heard.append((call, tool, text))

    dialect = DIALECTS[name]
    said = KINDS["calls"]
    with Server(*cases.answers(dialect, [said], streamed=True)) as server:
        model = dialect.model(server.url)
        asked = request(heard=hear)
        reply = asyncio.run(model.ask(asked))
        assert server.seen[0].json["stream"] is True
    assert model.bound(asked) == model.bound(request())
    whole = dict[tuple[int | None, str], str]()
    for call, tool, text in heard:
        whole[call, tool] = whole.get((call, tool), "") + text
    calls: Any = {(place, call.tool): call.arguments for place, call in enumerate(reply.calls)}
    assert whole == {(None, ""): said.text, **calls}
    assert len(heard) > len(whole)


@pytest.mark.parametrize("name", ["anthropic", "chat"])
def test_a_character_that_was_cut_in_two_is_whole_again(name: str) -> None:
    """Some servers cut an escaped character between its halves."""
    dialect = DIALECTS[name]
    stream = dialect.stream(CannedReply(text="ab"))
    half = b'"ab"'
    place = next(i for i, one in enumerate(stream) if half in one)
    both = [stream[place].replace(half, b'"\\ud83d"'), stream[place].replace(half, b'"\\ude00"')]
    with Server(Answer([*stream[:place], *both, *stream[place + 1 :]], headers=dict(SSE))) as server:
        reply = asyncio.run(cases.model(dialect, server.url, streamed=True).ask(request()))
    assert reply.text == "😀"
    assert "😀" in reply.raw


def test_a_lone_surrogate_is_replaced_in_the_text_and_kept_in_what_goes_back(tmp_path: Path) -> None:
    """The log can't hold it, but its escape it can."""
    for name, dialect in DIALECTS.items():
        body = dialect.whole(CannedReply(text="XX")).replace(b"XX", b"\\ud83d")
        with Server(Answer(body)) as server:
            assert cases.start(dialect.model(server.url), tmp_path, name).answer == "\ufffd"
        (reply,) = cases.replies(tmp_path, name)
        assert (reply.lossy, reply.raw.encode()) == (True, body)
        with Server(Answer(dialect.whole(LAST))) as server:
            cases.start(dialect.model(server.url), tmp_path, name + "-on", after=name)
            assert b'\\ud83d"' in server.seen[0].body


def test_deltas_of_later_versions_are_kept() -> None:
    """Citations join their list; a field that nobody knows yet joins the block or the message."""
    dialect = DIALECTS["anthropic"]
    stream = dialect.stream(CannedReply(text="ab"))
    new = [
        '{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"n" : 1e0}}}',
        '{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"n":2}}}',
        '{"type":"content_block_delta","index":0,"delta":{"type":"new_delta","novelty":"x","weight": 1e1}}',
        '{"type":"content_block_delta","index":0,"delta":{"type":"new_delta","novelty":"y"}}',
        '{"type":"unknown_event"}',
    ]
    place = next(i for i, one in enumerate(stream) if b"content_block_stop" in one)
    with Server(Answer([*stream[:place], *map(event, new), *stream[place:]], headers=dict(SSE))) as server:
        reply = asyncio.run(cases.model(dialect, server.url, streamed=True).ask(request()))
    assert '"citations":[{"n" : 1e0},{"n":2}]' in reply.raw
    assert '"weight":1e1' in reply.raw
    assert '"novelty":"xy"' in reply.raw


def test_chunks_of_other_servers_are_understood() -> None:
    """Names and types that are told again with each piece, calls without an index, arguments that are no string."""
    dialect = DIALECTS["chat"]
    chunks = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
        {"choices": [{"delta": {"reasoning_details": [{"index": 0, "type": "text", "text": "a", "format": "v1"}]}}]},
        {"choices": [{"delta": {"reasoning_details": [{"index": 0, "type": "text", "text": "b", "format": "v1"}]}}]},
        {
            "choices": [
                {
                    "delta": {
                        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "pay", "arguments": "{}"}}]
                    }
                }
            ]
        },
        {"choices": [{"delta": {"tool_calls": [{"index": None, "id": "c2", "function": {"name": "due"}}]}}]},
        {"choices": [{"delta": {"audio": {"id": "a1", "data": "x"}}}, {"delta": {"content": "another choice"}}]},
        {"choices": [{"delta": {"audio": {"data": "y"}, "role": ""}, "finish_reason": "stop"}]},
    ]
    events = [event(json.dumps(chunk)) for chunk in chunks]
    with Server(Answer([*events, event("[DONE]")], headers=dict(SSE))) as server:
        reply = asyncio.run(cases.model(dialect, server.url, streamed=True).ask(request()))
    message = json.loads(reply.raw)["choices"][0]["message"]
    assert message["reasoning_details"] == [{"type": "text", "text": "ab", "format": "v1"}]
    assert message["audio"] == {"id": "a1", "data": "xy"}
    assert message["role"] == "assistant"
    assert [(c.provider_id, c.tool, c.arguments) for c in reply.calls] == [("c1", "pay", "{}"), ("c2", "due", "{}")]
    assert (reply.text, reply.stop) == ("", "tool_calls")


def test_a_compatible_server_that_answers_in_one_piece_or_in_parts_is_understood() -> None:
    """Asked for a stream, some send none; text may come as parts, arguments as an object."""
    dialect = DIALECTS["chat"]
    message = {
        "role": "assistant",
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        "tool_calls": [{"function": {"name": "pay", "arguments": {"cents": 5}}}],
    }
    body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
    with Server(Answer(body)) as server:
        made = cases.model(dialect, server.url, streamed=True)
        reply = asyncio.run(made.ask(request()))
    assert reply.text == "ab"
    assert [(c.provider_id, c.tool, c.arguments) for c in reply.calls] == [("", "pay", '{"cents": 5}')]
    assert reply.usage.output_tokens == made.bound(request()).output_tokens, "no usage told: the bound counts"
    assert reply.model == "chat-model"


@pytest.mark.fault("half a character in a reply")
@pytest.mark.parametrize("given", [r'{"who": "\ud83d"}', '{"cents": NaN}', '{"a": ' * 500 + "1.0" + "}" * 500])
def test_arguments_that_are_an_object_are_kept_as_they_were_written(given: str) -> None:
    """The reply is paid: what can't be used of it is for the model to read, as it is of any others."""
    call = f'{{"function": {{"name": "pay", "arguments": {given}}}}}'
    body = f'{{"choices": [{{"message": {{"tool_calls": [{call}]}}, "finish_reason": "stop"}}]}}'
    with Server(Answer(body.encode())) as server:
        reply = asyncio.run(DIALECTS["chat"].model(server.url).ask(request()))
    assert [call.arguments for call in reply.calls] == [given]


@pytest.mark.fault("parallel calls with one index")
@pytest.mark.parametrize(
    "headers",
    [
        [{"id": "c1", "function": {"name": "pay"}}, {"id": "c2", "function": {"name": "pay"}}],
        [{"function": {"name": "pay"}}, {"function": {"name": "due"}}],
        [{"id": "c1", "function": {"name": "pay"}}, {"id": "c2", "function": {"name": "due"}}],
    ],
    ids=["other ids", "other names", "both"],
)
def test_parallel_calls_that_all_say_index_0_are_several_calls(headers: list[Any]) -> None:
    """Several servers send every call of a stream with the same index; one call's pieces keep together all the same."""
    deltas = [
        {"tool_calls": [{"index": 0, **piece}]}
        for header in headers
        for piece in (header, {"function": {"arguments": '{"cents"'}}, {"id": None, "function": {"arguments": ": 5}"}})
    ]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    events = [event(json.dumps(chunk)) for chunk in chunks]
    with Server(Answer([*events, event("[DONE]")], headers=dict(SSE))) as server:
        reply = asyncio.run(cases.model(DIALECTS["chat"], server.url, streamed=True).ask(request()))
    assert [(call.provider_id, call.tool, call.arguments) for call in reply.calls] == [
        (header.get("id", ""), header["function"]["name"], '{"cents": 5}') for header in headers
    ]
