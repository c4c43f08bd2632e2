"""Retrace from a log and from the command: what it says, what it leaves alone, and what it does not depend on."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

import eventlog
import replay
import runner
import runner.testing
from replay import Event, State
from replay._retrace import Decide
from replay.events import AttemptMarked, ResultRecorded, RunResumed
from tests.cli.conftest import Output, Refold
from tests.review.retrace import agents
from tests.support import tools
from tests.support.story import Line, Story

pytestmark = [pytest.mark.fault("code that decides otherwise after a deploy")]

AT = "--agent=tests.review.retrace.agents:"


@pytest.fixture
def looked(runs: Path) -> str:
    """A run that is done."""
    runner.start_sync(agents.looking, "look at one", runs=runs, run="looked")
    return "looked"


def test_a_run_goes_its_way_through_the_agent_that_ran_it(looked: str, runs: Path) -> None:
    """From the log alone: nothing is asked, nothing is run, nothing is written."""
    before = {path: path.read_bytes() for path in (runs / looked).iterdir()}
    told = runner.review.retrace(looked, agents.looking, runs=runs)
    assert (told.run, told.divergence, told.drift, told.decisions) == (looked, None, (), 4)
    told.check()
    assert {path: path.read_bytes() for path in (runs / looked).iterdir()} == before


def test_check_raises_the_divergence_with_both_sides(looked: str, runs: Path) -> None:
    """A test that says no more than "it differs" costs an hour."""
    told = runner.review.retrace(looked, agents.looking_elsewhere, runs=runs)
    with pytest.raises(replay.Diverged, match="looked diverges at line 3") as raised:
        told.check()
    assert "- " in raised.value.diff
    assert "there is no tool named 'look'" in str(raised.value)


def _divergence(was: Sequence[object], now: Sequence[object]) -> replay.Divergence:
    texts = [tuple(json.dumps(event) for event in side) for side in (was, now)]
    return replay.Divergence(seq=1, at=datetime(2026, 1, 1, tzinfo=UTC), was=texts[0], now=texts[1], why="it differs")


def test_a_diff_goes_into_values_and_shows_long_texts_line_by_line() -> None:
    """Two requests that differ in one digest, two results that differ in one line of many."""
    asked = {"type": "model_asked", "n": 1, "digests": {"tools": "a", "messages": "b"}}
    told = {"type": "result_recorded", "text": "one\ntwo\nthree\nfour\nfive"}
    split = _divergence(
        [asked, told, {"type": "wait_until"}],
        [
            {**asked, "digests": {"tools": "a", "messages": "c"}},
            {**told, "text": "one\ntwo\nthree\n4\nfive"},
        ],
    )
    assert split.diff().split("\n") == [
        "  the request to the model, digests.messages: changed",
        "  the result of a call, text:",
        "@@ -3,3 +3,3 @@",
        " three",
        "-four",
        "+4",
        " five",
        "- the wait: {}",
    ]


def test_a_diff_holds_nothing_that_a_terminal_would_obey() -> None:
    """It is printed by pytest and in CI, where nobody else looks after it."""
    hostile = "caf\u00e9 \x1b[31mred \x9b2J\u202eturned\u2066\nend"
    sides = [[{"type": "result_recorded", "text": f"{text}{hostile}"}] for text in ("", "a\n")]
    diff = _divergence(*sides).diff()
    assert all(line.isprintable() for line in diff.split("\n"))
    assert "caf\u00e9" in diff


def test_a_diff_of_ten_megabytes_is_cut() -> None:
    """A person reads it on a terminal."""
    long = [[{"type": "result_recorded", "text": letter * 10_000_000}] for letter in "ab"]
    assert len(_divergence(*long).diff()) < 1_000


def test_a_damaged_log_is_not_retraced(looked: str, runs: Path) -> None:
    """A history that nobody can vouch for proves nothing."""
    segment = runs / looked / "seg-000001.jsonl"
    segment.write_bytes(segment.read_bytes().replace(b"look at one", b"look at two"))
    with pytest.raises(eventlog.LogDamaged):
        runner.review.retrace(looked, agents.looking, runs=runs)


def test_the_command_says_that_today_s_code_decides_the_same(looked: str, refold: Refold) -> None:
    """Exit status 0, and how much was compared."""
    refold("retrace", looked, f"{AT}looking").ends(0, out=["decides the same, at all 4 decisions", "drift    none"])


def test_the_command_lists_drift_and_ends_well(looked: str, refold: Refold) -> None:
    """Other words break nothing."""
    refold("retrace", looked, f"{AT}looking_in_other_words").ends(
        0,
        out=[
            "instructions of the request to the model (2 lines, first line 2): changed",
            "instructions of the agent (line 1): changed",
        ],
    )


def test_the_command_says_in_words_how_a_tool_drifted(looked: str, refold: Refold) -> None:
    """A digest tells a person nothing."""
    said = refold("retrace", looked, f"{AT}looking_with_other_tools").ends(0)
    assert "digest=" not in said.out
    for tool, what in {
        "look": "description or arguments, visible_within 60.0 -> 5.5, timeout 60.0 -> 5.5",
        "pay": "gone",
        "knock": "new",
    }.items():
        assert f"tool {tool} of the agent (line 1): {what}\n" in said.out


def test_the_command_shows_both_sides_of_a_divergence_and_fails(looked: str, refold: Refold) -> None:
    """CI stops, and whoever reads it knows why."""
    refold("retrace", looked, f"{AT}looking_elsewhere").ends(
        1,
        out=[
            "decides differently, after 1 decision that is the same",
            "line 3",
            '- the attempt of a call: {"call": "1.0"',
            "there is no tool named 'look'",
        ],
    )
    again = refold("retrace", looked, f"{AT}looking_elsewhere", "--json").ends(1)
    assert (again.json["divergence"]["seq"], again.json["decisions"]) == (3, 1)


def test_an_agent_named_like_a_demonstration_task_is_not_taken_for_it(runs: Path, refold: Refold) -> None:
    """Names are the user's: `sweep` and `batch` are words for many things."""
    runner.start_sync(agents.looking.replace(name="sweep"), "look", runs=runs, run="mine")
    refold("retrace", "mine").ends(2, "", err="Missing option '--agent'")
    assert refold("retrace", "mine", f"{AT}looking").status == 0


def test_a_function_of_the_run_s_state_names_the_agents_of_many_runs(
    refold: Refold, runs: Path, tmp_path: Path
) -> None:
    """The demonstration has one agent for each task and world."""
    triage = pytest.importorskip("runner.triage")
    job = triage.Job.of("m1-done-after-delete", runs, approve="off")
    first = job.agent().replace(
        model=runner.testing.ScriptedModel([runner.testing.tool_calls(("crash_list", {})), "Nothing."])
    )
    workspace = tmp_path / "runs.world" / "m1-done-after-delete" / "workspace"
    workspace.mkdir(parents=True)
    runner.start_sync(first, "m1-done-after-delete", runs=runs, run="m1", workspace=workspace)
    said = refold("retrace", "m1", "--json", "--agent", "runner.triage:agent_of").ends(0)
    assert said.json["divergence"] is None
    assert {drift["part"] for drift in said.json["drift"]} == {"bound"}  # another model knows another price
    assert not (workspace.parent / "tracker.sqlite").exists()


def test_hash_seed_time_zone_and_directory_change_nothing(
    looked: str, runs: Path, process: Refold, tmp_path: Path
) -> None:
    """The same history, the same words, wherever and whenever they are asked for."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    ways: list[tuple[dict[str, str], Path]] = [
        ({"PYTHONHASHSEED": "1", "TZ": "UTC"}, tmp_path),
        ({"PYTHONHASHSEED": "2", "TZ": "Pacific/Auckland"}, elsewhere),
    ]
    words = ("retrace", looked, f"{AT}looking_elsewhere", "--runs", runs.resolve())
    said: list[Output] = [process(*words, env=env, cwd=cwd) for env, cwd in ways]
    assert said[0].status == 1
    assert said[0] == said[1]


def _by(agent: runner.Agent) -> Decide:
    return lambda state, now: runner.decide(agent, state, now)


def _looking() -> Story:
    story = Story(tools.agent())
    story.reply(("look", '{"cause": "a"}'), ("look", '{"cause": "b"}'))
    story.ran(call="1.0")
    return story


def test_deciding_more_than_the_history_is_a_divergence_at_that_line() -> None:
    """Named where it happens, not where the history would have gone on."""
    story = _looking()

    def more(state: State, now: datetime) -> list[Event]:
        intents = runner.decide(story.agent, state, now)
        extra = [ResultRecorded(call="1.0", how="invalid", text="no")]
        return [*intents, *(extra if any(isinstance(e, AttemptMarked) for e in intents) else [])]

    told = replay.retrace(story.lines, more)
    assert told.divergence is not None
    first = next(line.seq for line in story.lines if b"attempt_marked" in b"".join(map(bytes, line.events)))
    assert told.divergence.seq == first
    assert told.divergence.why == "the current code goes on with the result of a call, the history with nothing"


def _split(story: Story, after: Callable[[Sequence[Line]], Sequence[Line]]) -> list[Line]:
    """The story up to its two markers, the second of which stands in a line of its own; `after` says what follows."""
    last = next(line for line in story.lines if sum(b"attempt_marked" in bytes(raw) for raw in line.events) == 2)
    cut = Line(last.seq, last.life, last.at, last.events[:-1])
    rest = Line(last.seq + 1, last.life, last.at, [msgspec.Raw(bytes(last.events[-1]))])
    return [*story.lines[: last.seq], cut, *after([rest])]


def test_a_line_that_is_short_without_being_full_is_a_divergence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer puts into one line what fits; only a death behind a full one explains what is missing."""
    story = _looking()
    cut = _split(story, lambda _: [])
    told = replay.retrace(cut, _by(story.agent))
    assert told.divergence is not None
    assert told.divergence.seq == cut[-1].seq
    monkeypatch.setattr("replay._retrace.LINE", 100)
    assert replay.retrace(cut, _by(story.agent)).divergence is None


def test_a_death_between_the_lines_of_one_decision_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next life opens what was marked, and the rest was never decided."""
    monkeypatch.setattr("replay._retrace.LINE", 100)
    story = _looking()
    cut = _split(story, lambda _: [])
    opening = RunResumed(host="h", pid=2, counted=True, clock_back=False, definitions=story.agent.definitions)
    lines = [*cut, Line(len(cut), 2, story.now, [msgspec.Raw(replay.encode(opening))])]
    again = runner.decide(story.agent, replay.load(lines), story.now)
    lines.append(Line(len(cut) + 1, 2, story.now, [msgspec.Raw(replay.encode(event)) for event in again]))
    told = replay.retrace(lines, _by(story.agent))
    assert told.divergence is None
    assert told.seq == lines[-1].seq


def test_an_ignorable_event_of_a_later_version_is_no_decision() -> None:
    """It is passed over, where it stands among decisions too."""
    story = _looking()
    unknown = msgspec.Raw(b'{"type":"remark","ignorable":true}')
    lines = [Line(line.seq, line.life, line.at, [*line.events, unknown]) for line in story.lines]
    assert replay.retrace(lines, _by(story.agent)).divergence is None


def test_an_event_of_a_later_version_among_decisions_is_a_divergence() -> None:
    """The current code can't have decided what it does not know."""
    story = _looking()
    last = story.lines[-1]
    unknown = msgspec.Raw(b'{"type":"leapt","far":true}')
    marks = next(line for line in story.lines if b"attempt_marked" in b"".join(map(bytes, line.events)))
    lines = [*story.lines[: marks.seq], Line(marks.seq, marks.life, last.at, [*marks.events, unknown])]
    told = replay.retrace(lines, _by(story.agent))
    assert told.divergence is not None
    assert told.divergence.why == "the history goes on with leapt, the current code with nothing"
    assert json.loads(told.divergence.was[-1]) == {"type": "leapt", "far": True}


def test_a_run_resumed_with_approvals_off_is_retraced_whatever_the_agent_says(runs: Path) -> None:
    """Who answers approvals is the word of whoever started that life."""
    runner.start_sync(agents.paying, "pay", runs=runs, run="paid")
    runner.resume_sync("paid", agents.paying.replace(approve="off"), runs=runs)
    for approve in ("ask", "off"):
        told = runner.review.retrace("paid", agents.paying.replace(approve=approve), runs=runs)
        assert (told.divergence, told.drift) == (None, ())
