"""The console shows all runs and what they ask; what a person says there is said as everywhere, once, with a name."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

import eventlog
import runner
import runner.testing
from replay.events import MessageReceived, QuestionAnswered
from runner import ui
from tests.support import stage
from tests.ui import scenes
from tests.ui.scenes import Person


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A directory of runs that does not exist yet."""
    return tmp_path / "runs"


def asking(runs: Path, run: str = "r", to: str = "ann") -> None:
    """A run that asks whether it may pay."""
    stage.asked(runner.start_sync(scenes.paying(to), stage.TASK, runs=runs, run=run))


def doubtful(runs: Path, run: str = "d") -> None:
    """A run that asks whether something happened."""
    stage.asked(runner.start_sync(scenes.launching(), stage.TASK, runs=runs, run=run))


def test_a_person_finds_the_run_that_asks_says_yes_and_it_goes_on(runs: Path) -> None:
    """From the list to its end; the log has who said so."""
    asking(runs)
    ann = Person(runs, agents=[scenes.paying()])
    assert '<tr class="asks">' in ann.see("/")
    listed = re.findall(r">(\S+ ago|just now|[^<]* ago)</time>", ann.see("/"))
    assert [bool(re.fullmatch(r"\d+s ago", age)) for age in listed] == [True], f"as `refold ls` says it: {listed}"
    assert "May pay run?" in ann.see("/inbox")
    form = ann.form("/inbox", "/runs/r/answer", "approve")
    assert ann.send("/runs/r/answer", form) == "/inbox"
    assert "nothing is asked" in ann.see("/inbox")
    (given,) = stage.events(runs, QuestionAnswered)
    assert (given.who, given.answer, given.digest) == ("ann", "approve", form["digest"])
    with ann.client:
        ann.send("/runs/r/resume", ann.form("/runs/r", "/runs/r/resume"))
        stage.within(30, lambda: runner.read_state("r", runs).phase == "done")
    assert "Paid." in ann.see("/runs/r")
    assert '<tr class="done">' in ann.see("/")


def test_a_run_is_resumed_where_the_host_waits_for_its_rest_and_nowhere_else(runs: Path) -> None:
    """A host that runs no lifespan would cut it off in the middle of a call."""
    runner.enqueue(scenes.launching(), stage.TASK, runs=runs, run="d")
    ann = Person(runs, agents=[scenes.launching()])
    page, form = ann.see("/runs/d"), ann.form("/runs/d", "/runs/d/park")
    assert "Resume here" not in page
    assert "refold resume d --agent" in page
    assert "lifespan" in ann.send("/runs/d/resume", form, 409)
    assert runner.read_state("d", runs).carried == 1
    console = ui.app(runs, identify=lambda _request: "ann", agents=[scenes.launching()])
    ann.client = TestClient(
        Starlette(routes=[Mount("/ops", console)], lifespan=console.router.lifespan_context), base_url=scenes.HOST
    )
    with ann.client:
        ann.send("/ops/runs/d/resume", ann.form("/ops/runs/d", "/ops/runs/d/resume"), 200)
    assert runner.read_state("d", runs).phase == "paused", "it came to its rest before the host ended"


@pytest.mark.parametrize(
    ("verdict", "text", "result"),
    [
        ("refuse", "too dear", "too dear"),
        ("edit", '{"amount": 3, "to": "bob"}', "paid 3 to bob"),
        ("respond", "paid by hand", "paid by hand"),
    ],
)
def test_a_question_is_answered_in_every_way_that_there_is(runs: Path, verdict: str, text: str, result: str) -> None:
    """The call's result says so."""
    asking(runs)
    ann = Person(runs)
    ann.send("/runs/r/answer", {**ann.form("/runs/r", "/runs/r/answer", verdict), "text": text})
    stage.finished(runner.resume_sync("r", scenes.paying(), runs=runs))
    assert result in stage.results(runs)["1.0"].text


@pytest.mark.parametrize(("verdict", "how"), [("done", "settled"), ("failed", "settled")])
def test_a_call_in_doubt_is_settled(runs: Path, verdict: str, how: str) -> None:
    """As somebody found who looked."""
    doubtful(runs)
    ann = Person(runs)
    assert 'href="#call-1.0"' in ann.see("/runs/d")
    ann.send("/runs/d/answer", {**ann.form("/inbox", "/runs/d/answer", verdict), "text": "I looked"})
    stage.finished(runner.resume_sync("d", scenes.launching(), runs=runs))
    assert "I looked" in stage.results(runs, "d")["1.0"].text
    assert how


@pytest.mark.fault("a yes covers other arguments")
@pytest.mark.parametrize("changed", ["digest", "line"])
def test_an_answer_from_a_stale_page_changes_nothing_and_shows_what_changed(runs: Path, changed: str) -> None:
    """What the person saw is not what there is."""
    asking(runs)
    ann = Person(runs)
    form = ann.form("/inbox", "/runs/r/answer", "approve")
    if changed == "line":
        runner.send("r", "hurry up", "bob", runs=runs)
    before = stage.written(runs)
    said = ann.send("/runs/r/answer", form | ({"digest": "0" * 32} if changed == "digest" else {}), 409)
    assert stage.written(runs) == before
    assert ("hurry up" in said) == (changed == "line")
    assert stage.events(runs, QuestionAnswered) == []


def test_a_second_answer_is_told_who_was_first(runs: Path) -> None:
    """Also where both pages were made before."""
    asking(runs)
    ann, bob = Person(runs, "ann"), Person(runs, "bob")
    forms = [one.form("/inbox", "/runs/r/answer", "approve") for one in (ann, bob)]
    ann.send("/runs/r/answer", forms[0])
    assert "approve, by ann" in bob.send("/runs/r/answer", {**forms[1], "verdict": "refuse"}, 409)
    assert [given.who for given in stage.events(runs, QuestionAnswered)] == ["ann"]


def test_of_many_who_answer_at_once_exactly_one_does(runs: Path) -> None:
    """The log decides."""
    asking(runs)
    people = [Person(runs, f"p{n}") for n in range(6)]
    forms = [one.form("/inbox", "/runs/r/answer", "approve") for one in people]

    def answer(pair: tuple[Person, dict[str, str]]) -> int:
        status: int = pair[0].client.post("/runs/r/answer", data=pair[1], headers=pair[0].origin).status_code
        return status

    with ThreadPoolExecutor(6) as pool:
        found = sorted(pool.map(answer, zip(people, forms, strict=True)))
    assert found == [303, *[409] * 5]
    assert len(stage.events(runs, QuestionAnswered)) == 1


def test_a_run_is_written_to_parked_and_stopped_in_a_persons_name(runs: Path) -> None:
    """Stopping for good names what is in doubt before."""
    doubtful(runs)
    ann = Person(runs)
    ann.send("/runs/d/send", {**ann.form("/runs/d", "/runs/d/send"), "text": "look again"})
    (message,) = stage.events(runs, MessageReceived, "d")
    assert (message.who, message.text) == ("ann", "look again")
    ann.send("/runs/d/park", ann.form("/runs/d", "/runs/d/park"))
    assert "Stop for good, 1.0 in doubt" in ann.see("/runs/d")
    ann.send("/runs/d/stop", ann.form("/runs/d", "/runs/d/stop"))
    stopped = runner.read_state("d", runs).stopped
    assert stopped is not None
    assert (stopped.reason, stopped.detail) == ("StoppedByPerson", "by ann")


def test_a_call_in_doubt_shows_the_rung_that_it_is_on_and_what_each_rung_said(runs: Path) -> None:
    """Its attempts, what the service said, and what a person is asked."""

    @runner.tool(key_ttl=timedelta(hours=1), effect="keyed", attempts=1)
    def ship() -> str:
        raise runner.OutcomeUnknown("the line went dead")

    @ship.lookup
    def shipped(call: runner.Call) -> runner.Unsure:  # noqa: ARG001 (as a lookup is called)
        return runner.Unsure()

    agent = stage.agent([runner.testing.tool_calls(("ship", {})), "Shipped."], ship, name="shipping")
    stage.asked(runner.start_sync(agent, stage.TASK, runs=runs, run="s"))
    page = Person(runs).see("/runs/s").partition("</aside>")[0]
    for said in (
        "may have happened. Now: a person must say whether it happened",
        "attempt 1: keyed",
        "the line went dead",
        "the service was asked: unsure",
        "nobody has answered",
    ):
        assert said in page, said


def test_a_fork_is_looked_at_before_and_found_afterwards(runs: Path) -> None:
    """Its guard is what the page showed."""
    asking(runs)
    runner.approve("r", "1.0-approve", "ann", runs=runs)
    stage.finished(runner.resume_sync("r", scenes.paying(), runs=runs))
    ann = Person(runs)
    assert "came to paid 7 to ann" in ann.see("/runs/r/fork?at=2")
    made = ann.send("/runs/r/fork", ann.form("/runs/r/fork?at=2", "/runs/r/fork"))
    assert "Forked from" in ann.see(made)
    assert made.rpartition("/")[2] in ann.see("/runs/r")
    assert [one.call for one in runner.read_state(made.rpartition("/")[2], runs).fork_guard] == ["1.0"]


def test_log_report_and_the_state_at_a_line_are_there_to_take(runs: Path) -> None:
    """The log byte for byte; the report as its own command makes it."""
    asking(runs)
    ann = Person(runs)
    store = eventlog.store(runs)
    assert ann.see("/runs/r/log").encode() == b"".join(store.raw(store.read("r")))
    assert '<meta http-equiv="Content-Security-Policy"' in ann.see("/runs/r/report")
    assert "&quot;phase&quot;" in ann.see("/runs/r/state?at=2").replace("&#34;", "&quot;") or '"phase"' in ann.see(
        "/runs/r/state?at=2"
    )


def test_the_list_is_filtered_and_paged(runs: Path) -> None:
    """By what each run's status says."""
    for number in range(60):
        stage.start(["over"], runs=runs, run=f"done-{number:02}", name="agent")
    asking(runs, "asks")
    ann = Person(runs)
    assert ann.see("/").count("<tr class=") == 50
    assert ann.see("/?page=2").count("<tr class=") == 11
    for query, count in (("status=asks", 1), ("agent=agent&text=DONE-5", 10), ("text=nothing", 0), ("newer=1h", 50)):
        assert ann.see(f"/?{query}").count("<tr class=") == count, query
    assert ann.see("/?live=yes").count("<tr class=") == 0
    ann.see("/?newer=soon", 400)
    ann.see("/?page=x", 400)


def test_what_does_not_exist_or_makes_no_sense_is_said_on_a_page(runs: Path) -> None:
    """No traceback, whatever is asked."""
    asking(runs)
    ann = Person(runs)
    for path, status in {
        "/runs/nope": 404,
        "/runs/NO%20PE": 404,
        "/runs/r/state?at=x": 400,
        "/runs/r/state": 400,
        "/runs/r/state?at=-1": 404,
        "/runs/r/state?at=99": 404,
        "/runs/r/events?after=x": 400,
        "/static/..%2f_app.py": 404,
        "/static/_nav.html": 404,
    }.items():
        ann.see(path, status)
    csrf: Any = {"csrf": ann.form("/runs/r", "/runs/r/send")["csrf"]}
    for action, form, status in (
        ("answer", {}, 400),
        ("answer", {"question": "q", "digest": "", "line": "3", "verdict": "approve"}, 409),
        ("fork", {"at": "99", "line": "3"}, 409),
        ("explode", {}, 404),
        ("send", {"text": "x" * (2 << 20)}, 413),
    ):
        ann.send(f"/runs/r/{action}", csrf | form, status)


def test_what_is_said_while_the_list_is_read_is_seen_at_once(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list that is being read is without it, and serves nobody who comes later."""
    asking(runs)
    read, go, whole = threading.Event(), threading.Event(), runner.list_runs

    def slowly(*given: Any, **named: Any) -> list[runner.RunInfo]:
        found = whole(*given, **named)
        if not read.is_set():
            read.set()
            assert go.wait(60)
        return found

    ann = Person(runs)
    form = ann.form("/runs/r", "/runs/r/answer", "approve")
    monkeypatch.setattr(runner, "list_runs", slowly)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(ann.see, "/")
        assert read.wait(60)
        ann.send("/runs/r/answer", form)
        go.set()
        assert '<tr class="asks">' in first.result()
    assert '<tr class="asks">' not in ann.see("/")
