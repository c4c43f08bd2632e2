"""When a refusal speaks for the whole attempt, and when it can't: second requests, redirects, and what only reads."""

from pathlib import Path
from typing import Any

import httpx
import pytest

import runner
import runner.web
from tests.web import wire
from tests.web.clients import KINDS, PLAIN, Kind, did, each_kind, tool

BIG = b"x" * (16 << 20)
HALF = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"
SYNC = KINDS["httpx sync"]


@pytest.mark.fault("lost reply")
def test_a_refusal_of_the_second_request_does_not_speak_for_the_first(runs: Path) -> None:
    """The first one has taken effect, so "this attempt did nothing" would be false."""

    def body() -> Any:
        with httpx.Client(base_url=service.url, **PLAIN) as client:
            runner.web.result(client.post("/first"))
            return runner.web.result(client.post("/second"))

    with wire.service(_by_path({"/first": 200, "/second": 400})) as service:
        assert did(runs, tool(body, "non_idempotent"))[0] == "unknown"


def test_a_second_request_that_was_never_sent_does_not_speak_for_the_first(runs: Path) -> None:
    """The same, where the second service is down."""

    def body() -> Any:
        with httpx.Client(**PLAIN, event_hooks={"request": [runner.web.key_hook]}) as client:
            with runner.web.sending():
                client.post(service.url)
            with runner.web.subkey(1), runner.web.sending():
                return runner.web.result(client.post(wire.nobody()))

    with wire.service(wire.answers(200)) as service:
        assert did(runs, tool(body))[0] == "unknown"


def test_an_earlier_block_that_sent_something_makes_a_failure_unknown(runs: Path) -> None:
    """A tool may raise `ToolFailed` itself; it can't mean the block before."""

    def body() -> Any:
        with httpx.Client(**PLAIN) as client:
            with runner.web.sending():
                runner.web.result(client.post(service.url))
            with runner.web.sending():
                raise runner.ToolFailed("no")

    with wire.service(wire.answers(200)) as service:
        what, _, said = did(runs, tool(body, "non_idempotent"))
    assert (what, said) == ("unknown", "no (an earlier request of this call was sent)")


def test_reading_first_takes_nothing_from_a_refusal(runs: Path) -> None:
    """A safe method changes nothing, so the refusal of the next request still says that nothing happened."""

    def body() -> Any:
        with httpx.Client(base_url=service.url, **PLAIN) as client:
            with runner.web.sending():
                runner.web.result(client.get("/first"))
            with runner.web.sending():
                return runner.web.result(client.post("/second"))

    with wire.service(_by_path({"/first": 200, "/second": 400})) as service:
        assert did(runs, tool(body, "non_idempotent"))[:2] == ("nothing", None)


@each_kind
@pytest.mark.parametrize("status", [500, 409, 408])
def test_what_only_reads_fails_and_is_worth_another_try(kind: Kind, status: int, runs: Path) -> None:
    """In a tool that reads nothing can have acted, so there is nothing for the ladder to settle."""
    with wire.service(wire.answers(status)) as service:
        assert did(runs, tool(kind.send("POST", service.url), "reads"))[:2] == ("nothing", 1.0)


@each_kind
def test_a_broken_read_fails_and_is_worth_another_try(kind: Kind, runs: Path) -> None:
    """The same for a connection that broke; and a safe request of a tool that acts is a read too."""
    with wire.service(wire.says(HALF)) as service:
        assert did(runs / "a", tool(kind.send("POST", service.url), "reads"))[:2] == ("nothing", 1.0)
        assert did(runs / "b", tool(kind.send("GET", service.url), "non_idempotent"))[:2] == ("nothing", 1.0)


@pytest.mark.fault("redirect after an effect")
@each_kind
def test_after_a_redirect_nothing_is_certain(kind: Kind, tmp_path: Path) -> None:
    """The first service may have acted and sent the client on; the later hop's refusal or silence is not its own."""
    nobody = wire.nobody()
    for n, (status, place) in enumerate([(303, nobody), (307, nobody), (303, "/gone"), (307, "/gone")]):
        manner = _by_path({"/": status, "/gone": 404}, location=place)
        with wire.service(manner) as service:
            found = did(tmp_path / str(n), tool(kind.send("POST", service.url, follow_redirects=True)))
        assert found[0] == "unknown", (status, place)


@pytest.mark.fault("redirect after an effect")
def test_a_safe_request_without_the_hook_may_follow_a_redirect(runs: Path) -> None:
    """Without the hook's mark a GET that could not connect may be the second hop of a POST that acted."""
    with wire.service(_by_path({"/": 303}, location=wire.nobody())) as service:
        body = SYNC.send("POST", service.url, hook=None, follow_redirects=True)
        assert did(runs, tool(body, "non_idempotent"))[0] == "unknown"


def _by_path(statuses: dict[str, int], location: str = "/") -> wire.Manner:
    """Answer each path with its own status."""

    def manner(connection: wire.Connection) -> None:
        while (seen := connection.read()) is not None:
            head = f"HTTP/1.1 {statuses[seen.path]} Said\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"
            connection.socket.sendall(head.encode())

    return manner
