"""Services that answer with what no client should take: a bomb, a deep body, a redirect to a stranger, a long wait."""

import gzip
import json
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest

import runner
import runner.web
from runner.web import BodyLimit
from tests.support import stage
from tests.web import wire
from tests.web.clients import KINDS, Kind, did, each_kind, ended, tool

MOST = 100_000
SYNC = KINDS["httpx sync"]


def body(data: bytes, *headers: tuple[str, str], status: int = 200) -> wire.Manner:
    """Answer with these bytes."""
    given = {"content-type": "application/json", "content-length": str(len(data)), **dict(headers)}
    head = f"HTTP/1.1 {status} Said\r\n" + "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return wire.says(head.encode() + b"\r\n" + data)


def limited(kind: Kind, url: str, most: int = MOST) -> runner.Tool:
    """A tool whose client reads at most `most` bytes of a body."""
    hooks = {"request": [runner.web.key_hook], "response": [BodyLimit(most)]}
    return tool(kind.send("POST", url, event_hooks=hooks))


BOMB = gzip.compress(b" " * 50_000_000)
PACKED = {
    "packed": (BOMB, "gzip"),
    "packed twice": (gzip.compress(BOMB), "gzip, gzip"),
    "packed otherwise": (b"\x28\xb5\x2f\xfd", "zstd"),
    "plain": (b" " * 1_000_000, "identity"),
}


@pytest.mark.fault("a decompression bomb")
@pytest.mark.parametrize("how", PACKED)
@each_kind
def test_a_body_is_read_up_to_a_size_and_its_status_still_counts(kind: Kind, how: str, runs: Path) -> None:
    """The call is done: to ask a person about it, or to repeat it, would help nobody."""
    data, encoding = PACKED[how]
    with wire.service(body(data, ("content-encoding", encoding))) as service:
        limited_tool = limited(kind, service.url)
        tracemalloc.start()
        done, _, text = did(runs, limited_tool)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert (done, text.endswith("packed in a way that is not read]")) == ("ran", True)
    assert len(text) < MOST + 200
    assert peak < 10_000_000


@each_kind
def test_a_body_below_the_limit_is_what_it_was(kind: Kind, runs: Path) -> None:
    """Packed or not, JSON or not."""
    whole = b'{"id": 7}'
    bare = zlib.compressobj(wbits=-15)
    packed = {
        "gzip": gzip.compress(whole),
        "deflate": zlib.compress(whole),
        "Deflate ": bare.compress(whole) + bare.flush(),
    }
    for n, (encoding, data) in enumerate([*packed.items(), ("identity", whole)]):
        with wire.service(body(data, ("content-encoding", encoding))) as service:
            assert did(runs / str(n), limited(kind, service.url)) == ("ran", None, '{"id": 7}')


HOSTILE = {
    "deep": (b"[" * 100_000 + b"]" * 100_000, "application/json"),
    "deeper than a result may be": (b"[" * 70 + b"]" * 70, "application/json"),
    "huge": (b'"' + b"x" * 20_000_000 + b'"', "application/json"),
    "no text": (b'{"id": 7', "application/json; charset=undefined"),
    "packed by its charset": (b"x\x9c", "text/plain; charset=zlib"),
    "slow charset": (b"a-" * 50_000, "text/plain; charset=punycode"),
    "half an escape": (b'"\\ud800"', "application/json"),
}


@pytest.mark.fault("a body that no reader reads makes a call unknown")
@pytest.mark.parametrize("how", HOSTILE)
@pytest.mark.parametrize("status", [200, 400])
def test_a_body_of_any_shape_never_makes_an_outcome_unknown(how: str, status: int, runs: Path) -> None:
    """The status says what happened; what can't be parsed is text."""
    data, kind = HOSTILE[how]
    with wire.service(body(data, ("content-type", kind), status=status)) as service:
        found, after, text = did(runs, tool(SYNC.send("POST", service.url)))
    assert (found, after) == ("ran" if status == 200 else "nothing", None)
    assert "can't be stored" not in text


@pytest.mark.fault("a redirect takes the key to a stranger")
@pytest.mark.parametrize(("status", "seen"), [(307, 0), (308, 0), (303, 1)])
@each_kind
def test_a_redirect_to_another_host_gets_neither_the_key_nor_what_acts(
    kind: Kind, status: int, seen: int, runs: Path
) -> None:
    """The first host may have acted, so it is unknown; a page to read is read, without the key."""
    with wire.service(wire.answers(200, "ok")) as stranger:
        moved = wire.answers(status, "", [("location", f"{stranger.url}/elsewhere")])
        with wire.service(moved) as service:
            send = kind.send("POST", service.url, follow_redirects=True)
            found, _, said = did(runs, tool(send))
    assert len(stranger.seen) == seen
    assert [key for key in stranger.keys if key] == []
    if not seen:
        assert (found, "nothing was sent there" in said) == ("unknown", True)


def test_what_only_reads_may_be_redirected(runs: Path) -> None:
    """It carries no key, and changes nothing anywhere."""
    with wire.service(wire.answers(200, "ok")) as stranger:
        moved = wire.answers(307, "", [("location", stranger.url)])
        with wire.service(moved) as service:
            send = SYNC.send("POST", service.url, follow_redirects=True)
            assert did(runs, tool(send, "reads"))[0] == "ran"
    assert stranger.keys == [None]


def _waits(runs: Path, after: str, **options: Any) -> float:
    clock = stage.Ticking()
    with wire.service(wire.answers(429, "", [("retry-after", after)])) as service:
        made = runner.Tool(SYNC.send("POST", service.url), name="act", attempts=2, **options)
        stage.start([runner.testing.tool_calls(("act", {})), "done"], made, runs=runs, clock=clock)
    return sum(clock.slept)


@pytest.mark.fault("a service asks for a year")
@pytest.mark.parametrize("after", ["31536000", "1e300", "Fri, 31 Dec 2199 23:59:59 GMT"])
def test_a_service_that_asks_for_a_year_gets_the_most_that_its_tool_waits(after: str, runs: Path) -> None:
    """An hour, or what the tool says."""
    assert _waits(runs / "a", after) == 3600.0
    assert _waits(runs / "b", after, max_wait=90) == 90.0
    assert _waits(runs / "c", "30", max_wait=90) == 30.0


@pytest.mark.fault("a service asks for a year")
def test_a_tool_that_passes_a_service_s_wish_on_waits_no_longer(runs: Path) -> None:
    """Its own `retry_after` is bounded in the same way, and a longer wait is declared."""

    def act() -> None:
        raise runner.ToolFailed("busy", retry_after=31_536_000)

    for most in (3600.0, 86_400.0):
        clock = stage.Ticking()
        made = runner.Tool(act, attempts=2, max_wait=most)
        stage.start([runner.testing.tool_calls(("act", {})), "done"], made, runs=runs / str(most), clock=clock)
        assert sum(clock.slept) == most


def test_json_is_parsed_as_before(runs: Path) -> None:
    """By its content type, in the encoding that JSON has."""
    data = json.dumps({"name": "größe"}, ensure_ascii=False).encode()
    with wire.service(body(data)) as service:
        assert ended(runs, tool(SYNC.send("POST", service.url)))[0].text == '{"name": "größe"}'  # type: ignore[union-attr] # it ran
