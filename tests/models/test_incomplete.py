"""Replies that are not whole: cut connections, cut streams, errors in their middle, and what only looks like one."""

import asyncio
import json

import pytest

import runner
from runner.models import _wire
from tests.models import cases
from tests.models.dialects import DIALECTS, CannedReply, event
from tests.models.server import JSON, SSE, Answer, Server
from tests.models.test_failures import LAST, failed
from tests.models.test_requests import request

SAID = CannedReply(text="Paying.", thinking="Hm.", calls=(("c1", "pay", '{"cents": 5}'),), stop="tool_calls")


@pytest.mark.fault("cut connection")
@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_connection_cut_before_or_during_the_body_may_have_been_paid(name: str, streamed: bool) -> None:
    """Whoever hangs up may have worked; whoever hung up after the last byte has answered."""
    dialect = DIALECTS[name]
    (whole,) = cases.answers(dialect, [LAST], streamed=False)
    assert isinstance(whole.body, bytes)
    for cut in (-1, 0, 1, len(whole.body) // 2, len(whole.body) - 1):
        error = failed(name, Answer(whole.body, headers=whole.headers, cut=cut), streamed=streamed)
        assert (error.transient, error.billed) == (True, True), cut
    with Server(Answer(whole.body, cut=len(whole.body))) as server:
        assert asyncio.run(cases.model(dialect, server.url, streamed=streamed).ask(request())).text == "Done."


@pytest.mark.fault("cut stream")
@pytest.mark.parametrize("name", DIALECTS)
def test_a_stream_cut_at_every_event_is_a_failed_attempt(name: str) -> None:
    """It ends without an error, and the SDK's helper would give a reply; only the provider can say that it is whole."""
    stream = DIALECTS[name].stream(SAID)
    answers = [Answer(stream[:n], headers=dict(SSE)) for n in range(len(stream))]
    with Server(*answers, Answer(stream, headers=dict(SSE))) as server:
        made = cases.model(DIALECTS[name], server.url, streamed=True)
        for n in range(len(stream)):
            with pytest.raises(runner.ModelError) as error:
                asyncio.run(made.ask(request()))
            assert (error.value.transient, error.value.billed) == (True, True), n
        assert asyncio.run(made.ask(request())).calls[0].arguments == '{"cents": 5}'


@pytest.mark.fault("cut stream")
@pytest.mark.parametrize("name", DIALECTS)
def test_a_stream_cut_inside_its_last_event_is_a_failed_attempt(name: str) -> None:
    """An unfinished event does not count, and nothing is awaited after the last one."""
    stream = DIALECTS[name].stream(SAID)
    body = b"".join(stream)
    assert failed(name, Answer(stream, headers=dict(SSE), cut=len(body) - 1), streamed=True).billed
    longer = {"content-length": str(len(body) + 100)}
    with Server(Answer(stream, headers=SSE | longer)) as server:
        asyncio.run(cases.model(DIALECTS[name], server.url, streamed=True).ask(request()))


STREAMED_ERRORS = [
    ("anthropic", '{"type":"error","error":{"type":"overloaded_error","message":"busy"}}', True),
    ("anthropic", '{"type":"error","error":{"type":"invalid_request_error","message":"busy"}}', False),
    ("responses", '{"type":"error","code":"server_error","message":"busy"}', True),
    ("responses", '{"type":"error","code":"bio_policy","message":"busy"}', False),
    (
        "responses",
        '{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"busy"}}}',
        True,
    ),
    ("anthropic", '{"type":"error","error":{"type":"no_such_kind_yet","message":"busy"}}', True),
    ("responses", '{"type":"error","code":"no_such_code_yet","message":"busy"}', True),
    ("chat", '{"error":{"type":"server_error","message":"busy"}}', True),
    ("chat", '{"error":{"message":"busy"}}', True),
    *[
        ("chat", f'{{"error":{{"code":{status},"message":"busy"}}}}', status > 422)
        for status in (400, 422, 429, 502, 529)
    ],
    ("chat", '{"error":{"code":"503","type":"upstream","message":"busy"}}', True),
    ("chat", '{"error":{"code":429,"type":"insufficient_quota","message":"busy"}}', False),
    ("chat", '{"error":{"code":"context_length_exceeded","message":"busy"}}', False),
    ("chat", '{"error":{"code":"' + "4" * 5_000 + '","type":"invalid_prompt","message":"busy"}}', False),
    ("chat", '{"error":{"code":"invalid_prompt","message":"busy"}}', False),
]


@pytest.mark.fault("error in a stream")
@pytest.mark.parametrize(("name", "data", "transient"), STREAMED_ERRORS)
def test_an_error_in_the_middle_of_a_reply_may_have_been_paid(name: str, data: str, transient: bool) -> None:
    """A code that is a status means what the status means; an unknown error is asked again, as a broken stream is."""
    stream = DIALECTS[name].stream(SAID)
    error = failed(name, Answer([*stream[:4], event(data)], headers=dict(SSE)), streamed=True)
    assert (error.transient, error.billed) == (transient, True)
    assert error.why.endswith("busy")


@pytest.mark.fault("malformed reply")
@pytest.mark.parametrize(("name", "streamed"), cases.MODES, ids=cases.IDS)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"not json",
        b"\xff\xfe",
        b'{"content":5,"output":5,"choices":5}',
        b"[" * 5000,
        b'{"choices":[]}',
    ],
)
def test_what_is_no_reply_is_a_failed_attempt(name: str, streamed: bool, body: bytes) -> None:
    """A gateway's page with status 200 is neither an answer nor a reason to crash."""
    error = failed(name, Answer(body), streamed=streamed)
    assert (error.transient, error.billed) == (True, True)


@pytest.mark.fault("malformed stream")
@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(
    "data",
    [
        "null",
        "[]",
        "{}",
        "no json",
        '{"type":5}',
        '{"type":"content_block_delta","index":7,"delta":{"type":"x","y":1}}',
        '{"choices":[5]}',
        '{"choices":[{"delta":{"tool_calls":[{"index":"x"}]}}]}',
    ],
)
def test_a_stream_of_nonsense_is_a_failed_attempt(name: str, data: str) -> None:
    """The same, event by event."""
    assert failed(name, Answer([event(data)], headers=dict(SSE)), streamed=True).billed


INCOMPLETE: list[tuple[str, bytes, bytes]] = [
    ("anthropic", b'"stop_reason":"end_turn"', b'"stop_reason":null'),
    ("responses", b'"status":"completed","incomplete_details"', b'"status":"in_progress","incomplete_details"'),
    ("responses", b'"status":"completed","incomplete_details"', b'"status":"cancelled","incomplete_details"'),
    ("chat", b'"finish_reason":"stop"', b'"finish_reason":null'),
    ("chat", b'"finish_reason":"stop"', b'"finish_reason":"error"'),
]


@pytest.mark.parametrize(("name", "said", "instead"), INCOMPLETE)
def test_a_reply_that_does_not_say_it_is_complete_is_none(name: str, said: bytes, instead: bytes) -> None:
    """Valid as it looks, its text may be half of one."""
    body = DIALECTS[name].whole(LAST)
    assert said in body
    error = failed(name, Answer(body.replace(said, instead)))
    assert (error.transient, error.billed) == (True, True)
    assert "not complete" in error.why


def test_an_error_where_a_reply_should_be_is_told() -> None:
    """Some servers report one with status 200."""
    overloaded = '"error":{"type":"server_error","message":"busy","code":"server_error"}'
    bodies = {"anthropic": '{"type":"error",' + overloaded + "}", "responses": '{"status":"failed",' + overloaded + "}"}
    for name, body in (bodies | {"chat": "{" + overloaded + "}"}).items():
        error = failed(name, Answer(body.encode()))
        assert (error.transient, error.billed) == (True, True)
        assert error.why == "the provider reported an error (server_error): busy"


@pytest.mark.fault("endless stream")
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", DIALECTS)
def test_a_reply_without_end_is_broken_off(name: str, streamed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What no log can hold need not be read to its end, and asking again would bring it again."""
    monkeypatch.setattr(_wire, "MOST", 300)
    dialect, endless = DIALECTS[name], CannedReply(text="x" * 600)
    answer = Answer(dialect.stream(endless), headers=dict(SSE)) if streamed else Answer(dialect.whole(endless))
    error = failed(name, answer, streamed=streamed)
    assert (error.transient, error.billed) == (False, True)
    assert error.why == "the reply is longer than 300 bytes"


@pytest.mark.fault("endless stream")
@pytest.mark.parametrize("status", [400, 429, 500])
@pytest.mark.parametrize("name", DIALECTS)
def test_of_a_refusal_without_end_the_beginning_is_read(name: str, status: int) -> None:
    """An SDK reads it whole, and this one never ends."""
    endless = [b'{"error": {"message": "no such thing'] + [b" and more" * 1000] * 20
    error = failed(name, Answer(endless, status, headers={"x-hang": "yes"}))
    assert (error.transient, error.billed) == (status != 400, status == 500)
    assert f"{status}" in error.why


@pytest.mark.fault("error in a body of a 200")
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("code", "transient"), [(400, False), (404, False), (429, True), (500, True), (502, True)])
def test_an_error_in_the_body_of_a_200_means_what_its_status_means(code: int, transient: bool, streamed: bool) -> None:
    """Gateways answer 200 and put what the provider said into the body."""
    body = json.dumps({"error": {"code": code, "message": "busy"}}).encode()
    error = failed("chat", Answer(body, headers=dict(JSON)), streamed=streamed)
    assert (error.transient, error.billed) == (transient, True)
