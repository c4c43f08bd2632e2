"""What came back and what it says about the attempt: against raw sockets that fail in each way, with both libraries."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import runner
import runner.testing
import runner.web
from tests.support import stage
from tests.web import wire
from tests.web.clients import KINDS, PLAIN, Kind, did, each_kind, tool

BIG = b"x" * (16 << 20)
HALF = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"
SYNC = KINDS["httpx sync"]


@pytest.mark.fault("lost reply")
@each_kind
@pytest.mark.parametrize(
    ("manner", "options"),
    [
        pytest.param(wire.closes, {}, id="closed before it read"),
        pytest.param(wire.says(b""), {}, id="closed after it read"),
        pytest.param(wire.says(b"", reset=True), {}, id="reset after it read"),
        pytest.param(wire.says(b"HTTP/1.1 20"), {}, id="half a head"),
        pytest.param(wire.says(HALF), {}, id="half a body after a 200"),
        pytest.param(wire.says(HALF, reset=True), {}, id="reset in the body of a 200"),
        pytest.param(wire.says(b"what?\r\n\r\n"), {}, id="no HTTP"),
        pytest.param(wire.hangs, {"timeout": 0.05}, id="no answer in time"),
        pytest.param(wire.deaf, {"timeout": 0.05, "content": BIG}, id="not read in time"),
        pytest.param(wire.breaks, {"content": BIG}, id="reset while it was sent"),
    ],
)
def test_a_request_that_broke_after_it_may_have_been_read_is_unknown(
    kind: Kind, manner: wire.Manner, options: dict[str, Any], runs: Path
) -> None:
    """Nobody can tell a service that closed before it acted from one that closed after."""
    with wire.service(manner) as service:
        what, _, said = did(runs, tool(kind.send("POST", service.url, **options)))
    assert what == "unknown"
    assert said.startswith("the request may have been carried out (")


@contextlib.contextmanager
def _nobody() -> Iterator[str]:
    yield wire.nobody()


@pytest.mark.fault("service down")
@each_kind
@pytest.mark.parametrize(
    ("place", "options"),
    [(_nobody, {}), (wire.full, {"timeout": 0.05}), (_nobody, {"proxy": "http://127.0.0.1:1"})],
    ids=["nobody listens", "connecting takes too long", "no proxy"],
)
def test_a_request_that_was_never_sent_did_nothing_and_is_worth_another_try(
    kind: Kind, place: Callable[[], contextlib.AbstractContextManager[str]], options: dict[str, Any], runs: Path
) -> None:
    """Connecting comes before sending, so this certainty is real."""
    with place() as url:
        what, after, said = did(runs, tool(kind.send("POST", url, **options)))
    assert (what, after) == ("nothing", 1.0)
    assert said.startswith("the request was not carried out (Connect")


@pytest.mark.parametrize("name", ["httpx sync", "httpx2 sync"])
def test_a_request_that_found_no_free_connection_was_never_sent(name: str, runs: Path) -> None:
    """A pool's limit is this side's own affair."""
    library = KINDS[name].library

    def body() -> Any:
        limits, timeout = library.Limits(max_connections=1), library.Timeout(5.0, pool=0.01)
        with (
            library.Client(limits=limits, timeout=timeout, **PLAIN) as client,
            client.stream("GET", service.url),
            runner.web.sending(),
        ):
            return runner.web.result(client.post(service.url))

    with wire.service(wire.says(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n1"), wire.hangs) as service:
        what, after, said = did(runs, tool(body))
        assert (what, after) == ("nothing", 1.0)
        assert "PoolTimeout" in said
        assert [seen.method for seen in service.seen] == ["GET"]


ROWS = [
    *[(status, "nothing", None) for status in (400, 401, 403, 404, 405, 410, 413, 415, 422)],
    *[(status, "nothing", 1.0) for status in (425, 429)],
    *[(status, "unknown", None) for status in (300, 302, 307, 408, 500, 501, 502, 503, 504)],
    (409, "unknown", 1.0),
    *[(status, "ran", None) for status in (200, 201, 202, 204)],
]


@each_kind
def test_every_status_says_what_the_table_says(kind: Kind, tmp_path: Path) -> None:
    """The classifier's table, row by row; the body of a refusal here has nothing to do with the key."""
    for status, what, after in ROWS:
        content = None if status == 204 else "title is missing"
        with wire.service(wire.answers(status, content)) as service:
            found = did(tmp_path / str(status), tool(kind.send("POST", service.url)))
        assert found[:2] == (what, after), status
        if what != "ran":
            assert found[2] == f"the service said {status}: title is missing"


@pytest.mark.fault("idempotency key refused")
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (422, "this key came with another request"),
        (422, ""),
        (400, '{"error": {"type": "idempotency_error"}}'),
        (400, '{"__type": "IdempotentParameterMismatch"}'),
        (409, "IdempotentParameterMismatch"),
    ],
)
def test_a_refusal_because_of_the_key_is_unknown(status: int, body: str, runs: Path) -> None:
    """Another request came with this call's key, which the log does not know: something may have happened."""
    with wire.service(wire.answers(status, body)) as service:
        assert did(runs, tool(SYNC.send("POST", service.url)))[0] == "unknown"


def test_a_refusal_of_a_request_without_a_key_is_not_about_one(runs: Path) -> None:
    """A service may well say that a key of the content is missing."""
    with wire.service(wire.answers(422, "the key 'title' is missing")) as service:
        assert did(runs, tool(SYNC.send("POST", service.url, hook=None), "non_idempotent"))[:2] == ("nothing", None)


def test_a_conflict_without_a_key_is_unknown_and_asks_for_no_wait(runs: Path) -> None:
    """It may be a conflict with what this very request has just made, by way of a proxy that sent it twice."""
    with wire.service(wire.answers(409, "there is one already")) as service:
        assert did(runs, tool(SYNC.send("POST", service.url, hook=None), "non_idempotent"))[:2] == ("unknown", None)


def test_a_key_that_the_tool_sends_by_hand_counts_as_one(runs: Path) -> None:
    """The hook is a convenience; what the service sees is the header."""

    def body(call: runner.Call) -> Any:
        with runner.web.sending():
            return runner.web.result(httpx.post(service.url, headers={"X-Request": f'"{call.key}"'}, **PLAIN))

    with wire.service(wire.answers(409, "in flight")) as service:
        assert did(runs, tool(body))[:2] == ("unknown", 1.0)


WAITS = [
    ("7", None, 7.0),
    (" 7 ", None, 7.0),
    ("Fri, 01 Jan 2026 10:01:00 GMT", "Fri, 01 Jan 2026 10:00:00 GMT", 60.0),
    ("Fri, 01 Jan 2026 10:00:00 GMT", "Fri, 01 Jan 2026 10:01:00 GMT", 1.0),
    ("Fri, 01 Jan 1999 10:00:00 GMT", None, 1.0),
    ("soon", None, 1.0),
    ("-1", None, 1.0),
    ("nan", None, 1.0),
    ("31536000", None, 3600.0),
    ("1e999", None, 3600.0),
    ("Fri, 01 Jan 2027 10:00:00 GMT", "Fri, 01 Jan 2026 10:00:00 GMT", 3600.0),
    ("\u0667", None, 1.0),
]


def test_a_wait_is_as_long_as_the_service_says(tmp_path: Path) -> None:
    """In seconds, or as a date by the service's own clock; nonsense and the past count as soon, a year as an hour."""
    for n, (after, date, seconds) in enumerate(WAITS):
        headers = [(b"retry-after", after.encode()), *([(b"date", date.encode())] if date else [])]
        response = httpx.Response(429, headers=headers)

        def body(response: httpx.Response = response) -> Any:
            return runner.web.result(response)

        with pytest.raises(runner.ToolFailed) as failed:
            body()
        assert failed.value.retry_after == seconds, (n, after)
    with wire.service(wire.answers(503, "busy", [("retry-after", "9")])) as service:
        assert did(tmp_path / "runs", tool(SYNC.send("POST", service.url)))[:2] == ("unknown", 9.0)


@pytest.mark.parametrize(
    ("content", "kind", "text"),
    [
        (b'{"id": 1}', "application/json; charset=utf-8", '{"id": 1}'),
        (b'{"id": 1}', "application/problem+json", '{"id": 1}'),
        (b'{"id": ', "application/json", '{"id": '),
        (b"plain", "text/plain", "plain"),
        (b"", "application/json", ""),
    ],
)
def test_what_was_done_is_a_result_whatever_its_body(content: bytes, kind: str, text: str, runs: Path) -> None:
    """A body that is not what it says must not turn an effect that happened into an unknown one."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(content)}\r\n\r\n".encode()
    with wire.service(wire.says(head + content)) as service:
        assert did(runs, tool(SYNC.send("POST", service.url))) == ("ran", None, text)


@each_kind
def test_raise_for_status_means_what_the_status_means(kind: Kind, tmp_path: Path) -> None:
    """Many wrappers call it; the response it carries says everything."""
    for n, (status, what) in enumerate([(404, "nothing"), (500, "unknown")]):

        def body() -> Any:
            with kind.library.Client(**PLAIN) as client, runner.web.sending():
                return client.post(service.url).raise_for_status().text

        with wire.service(wire.answers(status)) as service:
            assert did(tmp_path / str(n), tool(body, "non_idempotent"))[0] == what


def test_a_tool_may_say_what_a_status_means_for_its_service(tmp_path: Path) -> None:
    """A 404 of a deletion is done, a 409 of a service without keys a refusal, a 400 of a sloppy one unknown."""
    for n, (status, option, what) in enumerate(
        [(404, "done", "ran"), (409, "refused", "nothing"), (400, "unknown", "unknown")]
    ):

        def body(option: str = option, status: int = status) -> Any:
            with runner.web.sending():
                return runner.web.result(httpx.post(service.url, **PLAIN), **{option: [status]})

        with wire.service(wire.answers(status)) as service:
            assert did(tmp_path / str(n), tool(body, "non_idempotent"))[0] == what


def test_an_error_that_is_no_client_s_passes_as_it_is(runs: Path) -> None:
    """A bug in a tool must not be dressed up as the service's answer."""

    def body() -> Any:
        with runner.web.sending():
            raise KeyError("title")

    assert did(runs, tool(body, "non_idempotent")) == ("unknown", None, "KeyError: 'title'")


@pytest.mark.fault("replayed error")
def test_a_replayed_500_stays_unknown_however_often_it_comes(runs: Path) -> None:
    """A service that keeps a key's answer replays the failure too: the third says no more than the first."""
    with wire.service(wire.answers(500, "oops", [("idempotent-replayed", "true")])) as service:
        act = tool(SYNC.send("POST", service.url), attempts=3)
        paused = stage.start([runner.testing.tool_calls(("act", {})), "done"], act, runs=runs, clock=stage.Ticking())
        assert service.keys == [stage.key(runs, "1.0")] * 3
    assert [question.kind for question in stage.asked(paused)] == ["settle"]


def test_outside_of_a_call_an_answer_means_the_same() -> None:
    """A tool can be called by a test of its own, without a run."""
    with wire.service(wire.answers(400, "no")) as service, pytest.raises(runner.ToolFailed, match="said 400: no"):
        tool(SYNC.send("POST", service.url, hook=None)).function()
    with pytest.raises(runner.OutcomeUnknown, match="said 500"):
        runner.web.result(httpx.Response(500))
    with pytest.raises(runner.ToolFailed), runner.web.sending():
        httpx.post(wire.nobody(), **PLAIN)


def test_a_stream_that_nobody_read_is_classified_by_its_status() -> None:
    """There is no text to show, and that must not hide what the status says."""
    with (
        wire.service(wire.answers(400, "no")) as service,
        httpx.stream("POST", service.url, **PLAIN) as response,
        pytest.raises(runner.ToolFailed, match=r"said 400: $"),
    ):
        runner.web.result(response)
