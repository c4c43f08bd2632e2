"""Asks that come to nothing: what may be asked again, what may have been paid, and when."""

import asyncio
import contextlib
import json
import pickle
import socket
from pathlib import Path

import pytest

import runner
from replay.events import ModelFailed
from tests.models import cases
from tests.models.dialects import DIALECTS, KEY, CannedReply
from tests.models.server import JSON, SSE, Answer, Server
from tests.models.test_requests import request

LAST = CannedReply(text="Done.")


def failed(name: str, *answers: Answer, streamed: bool = False) -> runner.ModelError:
    """How an ask fails."""
    with Server(*answers) as server, pytest.raises(runner.ModelError) as error:
        asyncio.run(cases.model(DIALECTS[name], server.url, streamed=streamed).ask(request()))
    return error.value


def error_body(message: str, kind: str) -> bytes:
    """An error as the vendors write it."""
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


@pytest.mark.fault("provider error")
@pytest.mark.parametrize(("name", "streamed"), cases.MODES, ids=cases.IDS)
@pytest.mark.parametrize(
    ("status", "transient", "billed"),
    [
        (400, False, False), (401, False, False), (403, False, False), (404, False, False), (413, False, False),
        (422, False, False), (408, True, True), (409, True, False), (425, True, False), (429, True, False),
        (500, True, True), (502, True, True), (503, True, False), (504, True, True), (529, True, False),
    ],
)  # fmt: skip
def test_a_status_says_whether_to_ask_again_and_what_it_may_have_cost(
    name: str, streamed: bool, status: int, transient: bool, billed: bool
) -> None:
    """A request that was refused will be refused again; one that broke may have been worked on."""
    error = failed(name, Answer(error_body("no luck", "some_error"), status), streamed=streamed)
    assert (error.transient, error.billed, error.retry_after) == (transient, billed, None)
    assert error.why == f"the provider answered {status} (some_error): no luck"


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Sun, 01 Nov 2026 12:00:30 GMT", "date": "Sun, 01 Nov 2026 12:00:00 GMT"}, 30.0),
        ({"retry-after": "Sun, 01 Nov 2026 11:00:00 GMT", "date": "Sun, 01 Nov 2026 12:00:00 GMT"}, 0.0),
        ({"retry-after": "Sun, 01 Nov 2020 12:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, 0.0),
        ({}, None),
    ],
)
def test_a_provider_says_when_to_come_back(name: str, headers: dict[str, str], seconds: float | None) -> None:
    """In seconds, in milliseconds, or as a date by its own clock."""
    error = failed(name, Answer(b"", 429, JSON | headers))
    assert error.retry_after == seconds
    assert error.why == "the provider answered 429: it said nothing"


@pytest.mark.parametrize("name", DIALECTS)
def test_a_provider_that_says_whether_to_retry_is_believed(name: str) -> None:
    """It knows better than its status; and a used-up quota, a 429, lasts until somebody pays."""
    assert failed(name, Answer(b"{}", 400, JSON | {"x-should-retry": "true"})).transient
    assert not failed(name, Answer(b"{}", 500, JSON | {"x-should-retry": "false"})).transient
    body = b'{"error":{"message":"pay","type":"x","code":"insufficient_quota"}}'
    error = failed(name, Answer(body, 429, JSON | {"x-request-id": "req_7"}))
    assert (error.transient, error.why) == (
        False,
        "the provider answered 429 (insufficient_quota): pay [request req_7]",
    )


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"<html>bad gateway</html>", "<html>bad gateway</html>"),
        (b'{"error":"model not found"}', '{"error":"model not found"}'),
        (b'{"message":"no","code":7}', "no"),
        (b'["no"]', '["no"]'),
        (b"x" * 5000, "x" * 600),
    ],
)
def test_errors_in_any_form_are_told_in_short(name: str, body: bytes, says: str) -> None:
    """Proxies and compatible servers have forms of their own."""
    assert failed(name, Answer(body, 404)).why.partition(": ")[2] == says


@pytest.mark.fault("key in an error text")
@pytest.mark.parametrize("key", [KEY, "a key like no other"])
@pytest.mark.parametrize(("name", "streamed"), cases.MODES, ids=cases.IDS)
def test_a_key_that_a_provider_repeats_reaches_no_log(
    name: str, streamed: bool, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log is read by more people than a key is for; some servers have keys of a form of their own."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    body = error_body(f"bad key {key}, or sk-proj-abcd**************wxyz", "authentication_error")
    with Server(Answer(body, 401)) as server, pytest.raises(runner.errors.ModelUnavailable) as stopped:
        cases.start(cases.model(DIALECTS[name], server.url, streamed=streamed), tmp_path)
    assert "bad key [secret], or [secret]" in str(stopped.value)
    assert key.encode() not in b"".join(path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file())


@pytest.mark.fault("provider down")
@pytest.mark.parametrize(("name", "streamed"), cases.MODES, ids=cases.IDS)
def test_nothing_listens_so_nothing_was_sent(name: str, streamed: bool) -> None:
    """An ask that never left this machine is free."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(runner.ModelError) as error:
        asyncio.run(cases.model(DIALECTS[name], f"http://127.0.0.1:{port}", streamed=streamed).ask(request()))
    assert (error.value.transient, error.value.billed) == (True, False)
    assert error.value.why.count("ConnectError") == 1, "the same words of two libraries are said once"
    with pytest.raises(runner.ModelError) as error:
        asyncio.run(cases.model(DIALECTS[name], "ftp://x", streamed=streamed).ask(request()))
    assert (error.value.transient, error.value.billed) == (False, False)


@pytest.mark.parametrize(("name", "streamed"), cases.MODES, ids=cases.IDS)
def test_an_attempt_that_failed_is_logged_counted_and_made_again(name: str, streamed: bool, tmp_path: Path) -> None:
    """A 429 waits as the provider asks, a 500 as the ladder says, and counts as spent; the bytes are the same."""
    throttled = Answer(error_body("slow", "rate_limit_error"), 429, JSON | {"retry-after": "41"})
    clock = cases.Ticking()
    dialect = DIALECTS[name]
    answers = cases.answers(dialect, [throttled, Answer(b"", 500), Answer(b"", cut=-1), LAST], streamed=streamed)
    with Server(*answers) as server:
        made = cases.model(dialect, server.url, streamed=streamed)
        came = cases.start(made, tmp_path, clock=clock)
        assert len({seen.body for seen in server.seen}) == 1
    assert (came.answer, came.state.turns) == ("Done.", 1)
    assert clock.slept == [41.0, 16.0, 60.0]
    failures = cases.events(tmp_path, ModelFailed)
    assert [(f.transient, f.billed, f.retry_after) for f in failures] == [
        (True, False, 41.0),
        (True, True, None),
        (True, True, None),
    ]
    assert [f.error_type for f in failures] == ["RateLimitError", "InternalServerError", "APIConnectionError"]
    spent = came.state.spent
    assert (spent.lost_asks, spent.lost_output_tokens, spent.output_tokens) == (2, 1000, 30)


@pytest.mark.parametrize(("name", "streamed"), cases.MODES, ids=cases.IDS)
def test_a_request_that_is_refused_is_not_made_again(name: str, streamed: bool, tmp_path: Path) -> None:
    """A 400 says that the request is wrong; the same bytes stay wrong."""
    with Server(Answer(error_body("bad schema", "invalid_request_error"), 400)) as server:
        with pytest.raises(runner.errors.ModelUnavailable, match="bad schema"):
            cases.start(cases.model(DIALECTS[name], server.url, streamed=streamed), tmp_path)
        assert len(server.seen) == 1


@pytest.mark.parametrize("name", DIALECTS)
def test_without_a_key_the_run_stops_and_says_so(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Asking again finds no key either; with one, the run goes on."""
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("HOME", str(tmp_path))
    dialect = DIALECTS[name]
    with Server(Answer(dialect.whole(LAST))) as server:
        with pytest.raises(runner.errors.ModelUnavailable, match=r"failed for good: it can't be asked: .*api_key"):
            cases.start(dialect.model(server.url), tmp_path)
        assert not server.seen
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        assert cases.resume(dialect.model(server.url), tmp_path).answer == "Done."


@pytest.mark.fault("interrupted save")
@pytest.mark.parametrize("name", DIALECTS)
def test_a_shutdown_in_the_middle_of_a_reply_parks_the_run(name: str, tmp_path: Path) -> None:
    """What is cut off is an ask whose bound is spent, not an error of the provider's."""
    dialect = DIALECTS[name]
    stream = dialect.stream(LAST)

    async def cancelled(url: str) -> None:
        heard = asyncio.Event()
        made = cases.Heard(dialect.model(url), lambda *_: heard.set())
        running = asyncio.ensure_future(
            runner.start(cases.agent(made, tmp_path / "acts"), "x", runs=tmp_path / "runs", run="r", grace=0.05)
        )
        await heard.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    body = b"".join(stream)
    place = body.rindex(b"data:") if name != "responses" else body.rindex(b"event:")
    longer = Answer([body[:place]], headers=SSE | {"content-length": str(len(body) + 9), "x-hang": "1"})
    with Server(longer) as server:
        asyncio.run(asyncio.wait_for(cancelled(server.url), 20))
    assert runner.read_state("r", tmp_path / "runs").stopped is not None
    assert not cases.events(tmp_path, ModelFailed)


def test_the_errors_survive_pickling() -> None:
    """They may cross to another process."""
    error = failed("chat", Answer(b"", 429, JSON | {"retry-after": "7"}))
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own bytes)
    assert (again.why, again.transient, again.billed, again.retry_after) == (error.why, True, False, 7.0)
