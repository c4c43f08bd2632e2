"""The key goes with what can act, once, and never by guessing: a request that can't have its key is not sent."""

import asyncio
import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

import eventlog
import runner
import runner.testing
import runner.web
from runner.web import KeyHook
from tests.support import stage
from tests.web import wire
from tests.web.clients import DAY, KINDS, PLAIN, Kind, did, each_kind, tool

UID = "ab" * 16
KEY = runner.key(UID, "1.0")
SUBKEY = runner.key(UID, "1.0/1")
SYNC = KINDS["httpx sync"]


@pytest.fixture(autouse=True)
def _known_uid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eventlog.Disk, "random", lambda _disk, size: UID[: 2 * size])


@pytest.fixture
def service() -> Iterator[wire.Service]:
    """A service that answers everything with 200."""
    with wire.service(wire.answers(200, "ok")) as found:
        yield found


def client(**options: Any) -> httpx.Client:
    """A client with the hook."""
    return httpx.Client(**PLAIN, event_hooks={"request": [runner.web.key_hook]}, **options)


@each_kind
def test_the_calls_key_goes_with_the_request_in_a_header(kind: Kind, service: wire.Service, runs: Path) -> None:
    """Bare, as most services want it, and the same as the log's marker holds; in a sync tool's thread too."""
    assert did(runs, tool(kind.send("POST", service.url)))[0] == "ran"
    assert service.keys == [KEY]


@each_kind
def test_a_hook_may_name_the_header_and_quote_the_key(kind: Kind, service: wire.Service, runs: Path) -> None:
    """Services differ: PayPal has a name of its own, the IETF draft wants an RFC 8941 string."""
    did(runs / "a", tool(kind.send("POST", service.url, hook=KeyHook(header="PayPal-Request-Id"))))
    did(runs / "b", tool(kind.send("PATCH", service.url, hook=KeyHook(quoted=True))))
    assert service.seen[0].headers["paypal-request-id"] == KEY
    assert service.seen[1].headers["idempotency-key"] == f'"{KEY}"'


def test_only_what_http_calls_neither_safe_nor_idempotent_takes_it(service: wire.Service, runs: Path) -> None:
    """Unless the hook says otherwise."""
    for n, method in enumerate(("GET", "PUT", "DELETE")):
        did(runs / str(n), tool(SYNC.send(method, service.url)))
    did(runs / "put", tool(SYNC.send("PUT", service.url, hook=KeyHook(methods={"PUT"}))))
    assert service.keys == [None, None, None, KEY]


@pytest.mark.fault("second request with one key")
@each_kind
def test_a_second_keyed_request_without_a_subkey_is_not_sent(kind: Kind, service: wire.Service, runs: Path) -> None:
    """The service would take it for a repeat of the first and drop its effect without a word."""
    send = kind.send("POST", service.url)

    def twice() -> Any:
        send()
        return send()

    async def twice_awaited() -> Any:
        await send()
        return await send()

    what, _, said = did(runs, tool(twice_awaited if kind.awaited else twice))
    assert (what, len(service.seen)) == ("unknown", 1)
    assert said == f"NeedsSubkey: POST {service.url} was not sent: call 1.0 of act has used its key"


@each_kind
def test_a_second_request_takes_a_subkey_that_is_the_same_in_every_attempt(kind: Kind, runs: Path) -> None:
    """A retry repeats both requests under the keys that the service remembers them by."""
    with wire.service(wire.answers(200), wire.answers(500), wire.answers(200)) as service:
        send = kind.send("POST", service.url)

        def both() -> Any:
            send()
            with runner.web.subkey(1):
                return send()

        async def both_awaited() -> Any:
            await send()
            with runner.web.subkey(1):
                return await send()

        act = tool(both_awaited if kind.awaited else both, attempts=3)
        answer = stage.start([runner.testing.tool_calls(("act", {})), "done"], act, runs=runs, clock=stage.Ticking())
    assert stage.finished(answer) == "done"
    assert service.keys == [KEY, SUBKEY, KEY, SUBKEY]


def test_two_requests_at_once_can_t_both_take_the_key(service: wire.Service, runs: Path) -> None:
    """Looking and taking are one step, whichever thread comes first."""

    def body() -> list[str]:
        together = threading.Barrier(8)

        def post() -> str:
            together.wait(10)
            try:
                shared.post(service.url)
            except runner.web.NeedsSubkey:
                return "refused"
            return "sent"

        with ThreadPoolExecutor(8) as pool, client() as shared:
            carried = runner.web.carry(post)  # one function, in eight threads at once
            return sorted(job.result() for job in [pool.submit(carried) for _ in range(8)])

    what, _, said = did(runs, tool(body))
    assert (what, said.count("refused"), said.count("sent")) == ("ran", 7, 1)
    assert service.keys == [KEY]


def _submit(post: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(post).result()


def _executor(post: Callable[[], Any]) -> Any:
    async def run() -> Any:
        return await asyncio.get_running_loop().run_in_executor(None, post)

    return asyncio.run(run())


@pytest.mark.fault("call lost in a thread")
@pytest.mark.parametrize("elsewhere", [_submit, _executor])
def test_a_thread_that_lost_the_call_sends_nothing(
    elsewhere: Callable[[Callable[[], Any]], Any], service: wire.Service, runs: Path
) -> None:
    """Without the key a repeat would be a second effect, so a request that can't have it does not go."""

    def body() -> Any:
        with client() as own:
            return elsewhere(lambda: own.post(service.url).text)

    what, _, said = did(runs, tool(body))
    assert (what, said) == ("unknown", "NotInACall: no call is running here")
    assert service.seen == []


@pytest.mark.parametrize("elsewhere", [_submit, _executor])
def test_carry_takes_the_call_along(
    elsewhere: Callable[[Callable[[], Any]], Any], service: wire.Service, runs: Path
) -> None:
    """The way to use a thread pool of one's own."""

    def body() -> Any:
        with client() as own:
            return elsewhere(runner.web.carry(lambda: own.post(service.url).text))

    assert did(runs, tool(body)) == ("ran", None, "ok")
    assert service.keys == [KEY]


def test_to_thread_carries_the_call_by_itself(service: wire.Service, runs: Path) -> None:
    """The standard way needs nothing of ours."""

    async def body() -> Any:
        with client() as own:
            return (await asyncio.to_thread(own.post, service.url)).text

    assert did(runs, tool(body))[0] == "ran"
    assert service.keys == [KEY]


def test_outside_of_a_call_a_request_that_should_carry_a_key_is_an_error(service: wire.Service) -> None:
    """It may be a tool that was called by hand, or a thread that lost its call: the hook can't tell them apart."""
    with client() as own, pytest.raises(runner.errors.NotInACall):
        own.post(service.url)
    assert service.seen == []
    with client() as own:
        assert own.get(service.url).text == "ok"


def test_a_hook_may_let_requests_outside_of_a_call_go_without_a_key(service: wire.Service) -> None:
    """For a client that is shared with code that is no tool."""
    with httpx.Client(**PLAIN, event_hooks={"request": [KeyHook(required=False)]}) as own:
        own.post(service.url)
    assert service.keys == [None]


@each_kind
def test_a_tool_that_reads_sends_no_key(kind: Kind, service: wire.Service, runs: Path) -> None:
    """Nothing it asks may be remembered under a key; so it may also ask as often as it likes."""
    send = kind.send("POST", service.url)

    def twice() -> Any:
        send()
        return send()

    async def twice_awaited() -> Any:
        await send()
        return await send()

    assert did(runs, tool(twice_awaited if kind.awaited else twice, "reads"))[0] == "ran"
    assert service.keys == [None, None]


def test_a_lookup_sends_no_key(runs: Path) -> None:
    """A search by POST under the call's key would be what the service remembers it by."""
    with wire.service(wire.answers(500), wire.answers(200, "found it")) as service:
        act = tool(SYNC.send("POST", service.url), "non_idempotent")

        @act.lookup(visible_within=0)
        def find(_: runner.Call) -> runner.Found:
            with client() as own, runner.web.sending():
                return runner.Found(runner.web.result(own.post(service.url)))

        answer = stage.start([runner.testing.tool_calls(("act", {})), "done"], act, runs=runs, clock=stage.Ticking())
    assert stage.finished(answer) == "done"
    assert stage.results(runs)["1.0"].text == "found it"
    assert service.keys == [KEY, None]


@each_kind
def test_a_request_that_is_redirected_keeps_its_key(kind: Kind, runs: Path) -> None:
    """It is one request, sent on: the hook runs again, and must neither refuse it nor give it another key."""

    def manner(connection: wire.Connection) -> None:
        while (seen := connection.read()) is not None:
            status = "307 On\r\nlocation: /there" if seen.path == "/" else "200 OK"
            connection.socket.sendall(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n".encode())

    with wire.service(manner) as service:
        assert did(runs, tool(kind.send("POST", service.url, follow_redirects=True)))[0] == "ran"
    assert [(seen.path, key) for seen, key in zip(service.seen, service.keys, strict=True)] == [
        ("/", KEY),
        ("/there", KEY),
    ]


def test_a_login_in_the_same_client_can_be_left_out(service: wire.Service, runs: Path) -> None:
    """An auth flow's own POST runs through the hook too; it must not use the key up."""

    class Login(httpx.Auth):
        def auth_flow(self, request: httpx.Request) -> Any:
            yield httpx.Request("POST", f"{service.url}/login")
            yield request

    def body() -> Any:
        hook = KeyHook(only=lambda request: request.url.path != "/login")
        with httpx.Client(**PLAIN, auth=Login(), event_hooks={"request": [hook]}) as own:
            return own.post(f"{service.url}/pay").text

    assert did(runs, tool(body))[0] == "ran"
    assert [(seen.path, key) for seen, key in zip(service.seen, service.keys, strict=True)] == [
        ("/login", None),
        ("/pay", KEY),
    ]


def test_a_key_set_by_hand_stays_and_counts(service: wire.Service, runs: Path) -> None:
    """A tool may send `call.subkey(n)` itself; twice the same is still an error."""

    def body(call: runner.Call) -> Any:
        with client() as own:
            own.post(service.url)
            own.post(service.url, headers={"Idempotency-Key": f'"{call.subkey(1)}"'})
            return own.post(service.url, headers={"Idempotency-Key": call.subkey(1)}).text

    what, _, said = did(runs, runner.tool(name="act", effect="keyed", key_ttl=DAY, attempts=1)(body))
    assert (what, said.partition(":")[0]) == ("unknown", "NeedsSubkey")
    assert service.keys == [KEY, f'"{SUBKEY}"']


def test_the_error_survives_pickle_and_says_what_to_do() -> None:
    """It may cross a process pool; and a reader must not have to look the rule up."""
    error = runner.web.NeedsSubkey("pay", "1.0", "POST", "http://x/")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own bytes)
    assert (str(again), again.tool, again.hint) == (str(error), "pay", error.hint)
    assert "runner.web.subkey(n)" in error.hint
