"""SIGKILL before and after a reply is saved: nothing is paid twice that was saved, and the next request is the same."""

import os
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import replay
import runner
from replay.events import ModelAsked, ModelFailed, ReplySaved, RunResumed
from replay.state import Spent
from tests.models import cases, processes
from tests.models.dialects import DIALECTS, CannedReply
from tests.models.server import JSON, Answer, Server
from tests.support.forkserver import ForkServer

LAST = CannedReply(text="All paid.")
TWO = (("c1", "pay", '{"cents": 5}'), ("c2", "pay", '{ "cents":7 }'))
STORIES: dict[str, Sequence[CannedReply | Answer]] = {
    "parallel": [CannedReply("Paying é.", "I think 😀.", TWO, "tool_calls"), LAST],
    "refusal": [CannedReply(text="I will not.", stop="refusal")],
    "length": [CannedReply(calls=TWO, stop="length"), LAST],
    "invalid": [CannedReply(calls=(("c1", "pay", '{"cents": "five"}'),), stop="tool_calls"), LAST],
    "throttled": [
        Answer(b'{"error":{"message":"slow"}}', 429, JSON | {"retry-after": "7"}),
        CannedReply(calls=TWO, stop="tool_calls"),
        LAST,
    ],
    "broken": [Answer(b"oops", 500), CannedReply(calls=TWO, stop="tool_calls"), LAST],
}
ACTS = {
    "parallel": ["5", "7"],
    "refusal": [],
    "length": [],
    "invalid": [],
    "throttled": ["5", "7"],
    "broken": ["5", "7"],
}
QUICK = ("parallel", "broken")
"""The stories that every run of the tests plays; the others take the full one."""
CASES = [
    pytest.param(
        name,
        story,
        die,
        (place + turn) % 2 == 0,
        id=f"{name}-{story}-{die}",
        marks=[] if story in QUICK else [pytest.mark.full],
    )
    for place, name in enumerate(DIALECTS)
    for story in STORIES
    for turn, die in enumerate(("arrived", "saved"))
]


def _spent(root: Path) -> Spent:
    return runner.read_state("r", root / "runs").spent


def _lost(root: Path) -> tuple[int, int]:
    """The asks that came to nothing and may have been paid, and their bounds, as an auditor adds them up.

    An ask may be lost that was never sent: it is logged in the line that holds what came before it.
    """
    open_ask: ModelAsked | None = None
    lost: list[int] = []
    for event in cases.events(root, replay.Event):
        free = isinstance(event, ReplySaved) or (isinstance(event, ModelFailed) and not event.billed)
        if open_ask is not None and isinstance(event, ModelFailed | RunResumed) and not free:
            lost.append(open_ask.bound.input_tokens)
        if isinstance(event, ReplySaved | ModelFailed | RunResumed):
            open_ask = None
        if isinstance(event, ModelAsked):
            open_ask = event
    return len(lost), sum(lost)


def _without_repeats(bodies: list[bytes]) -> list[bytes]:
    return [body for before, body in zip([None, *bodies], bodies, strict=False) if body != before]


@pytest.mark.fault("killed between two operations")
@pytest.mark.parametrize(("name", "story", "die", "streamed"), CASES)
def test_a_life_that_dies_at_a_reply_is_carried_on_with_the_same_bytes(
    name: str, story: str, die: str, streamed: bool, forks: ForkServer, tmp_path: Path
) -> None:
    """Another process asks what this one would have asked, to the byte; what was saved is asked for no more."""
    dialect = DIALECTS[name]
    said = STORIES[story]
    replies = cases.answers(dialect, said, streamed=streamed)
    with Server(*replies) as server:
        calm = tmp_path / "calm"
        calm.mkdir()
        answer = cases.start(cases.model(dialect, server.url, streamed=streamed), calm).answer
        wanted = [seen.body for seen in server.seen]
    first = next(place for place, one in enumerate(said) if isinstance(one, CannedReply))
    again = [replies[first]] if die == "arrived" else []
    with Server(*replies[: first + 1], *again, *replies[first + 1 :]) as server:
        given = {"dialect": name, "url": server.url, "streamed": streamed}
        assert forks.run(processes.run, root=tmp_path, **given, resumed=False, die=die).killed
        assert len(server.seen) == first + 1
        assert forks.run(processes.run, root=tmp_path, **given, resumed=True).value == {"answer": answer}
        bodies = [seen.body for seen in server.seen]
    assert _without_repeats(bodies) == _without_repeats(wanted)
    assert len(bodies) == len(wanted) + len(again)
    assert cases.acts(tmp_path) == ACTS[story]
    assert cases.replies(tmp_path) == cases.replies(calm)
    lost, calmly = _spent(tmp_path), _spent(calm)
    assert (lost.input_tokens, lost.output_tokens) == (calmly.input_tokens, calmly.output_tokens)
    assert (lost.lost_asks, lost.lost_input_tokens) == _lost(tmp_path)
    assert lost.lost_asks >= calmly.lost_asks + len(again)


@pytest.mark.fault("killed during an ask")
@pytest.mark.parametrize(("name", "streamed"), cases.MODES, ids=cases.IDS)
def test_killed_while_the_provider_works_the_ask_is_lost_and_its_bound_is_spent(
    name: str, streamed: bool, forks: ForkServer, tmp_path: Path
) -> None:
    """Nobody knows what it cost, so it counts as the most it can have cost."""
    dialect = DIALECTS[name]
    reply = cases.answers(dialect, [LAST], streamed=streamed)[0]
    held = Answer(reply.body, headers=reply.headers, held=threading.Event())
    with Server(held, reply) as server:
        given = {"dialect": name, "url": server.url, "streamed": streamed}
        child = forks.begin(processes.run, root=tmp_path, **given, resumed=False)
        end = time.monotonic() + 60
        while not server.seen and time.monotonic() < end:
            time.sleep(0.002)
        os.kill(child.pid, signal.SIGKILL)
        assert child.end().killed
        assert forks.run(processes.run, root=tmp_path, **given, resumed=True).value == {"answer": LAST.text}
        assert server.seen[0].body == server.seen[1].body
    spent = _spent(tmp_path)
    assert (spent.lost_asks, spent.lost_output_tokens, spent.output_tokens) == (1, 500, 30)


@pytest.mark.fault("killed during a wait")
@pytest.mark.parametrize("name", DIALECTS)
def test_a_crash_in_the_middle_of_a_backoff_goes_on_counting(name: str, forks: ForkServer, tmp_path: Path) -> None:
    """A provider that is down stays down for a process that is started anew; six in a row are six in a row."""
    with Server(*[Answer(b'{"error":{"message":"overloaded"}}', 503)] * 9) as server:
        given = {"dialect": name, "url": server.url, "streamed": False}
        assert forks.run(processes.run, root=tmp_path, **given, resumed=False, die="backoff", waits=2).killed
        assert len(server.seen) == 2
        assert forks.run(processes.run, root=tmp_path, **given, resumed=True, die="backoff", waits=1).killed
        ended = forks.run(processes.run, root=tmp_path, **given, resumed=True).value
        assert len(server.seen) == 6
        assert len({seen.body for seen in server.seen}) == 1
    assert ended["stopped"] == "ModelUnavailable"
    assert [asked.n for asked in cases.events(tmp_path, ModelAsked)] == [1, 2, 3, 4, 5, 6]
    assert _spent(tmp_path).lost_asks == 0
