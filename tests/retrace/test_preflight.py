"""Preflight: for every unfinished run whether today's code can go on, and what stands in the way (hazard 33)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import eventlog
import replay
import runner
from replay import Limits
from tests.decide import tools
from tests.decide.story import BEGIN, Story
from tests.retrace import agents
from tests.retrace.histories import calling, logged

AT = "--agent=tests.retrace.agents:"
A = '{"cause": "a"}'


class Fixed(runner.Clock):
    """It is always the same moment: a minute after the stories began."""

    def wall(self) -> datetime:
        """That moment."""
        return BEGIN + timedelta(minutes=1)


def _preflight(story: Story, runs: Path, agent: runner.Agent) -> runner.Preflight:
    logged(story, runs)
    (found,) = runner.preflight(runs, agent, clock=Fixed())
    assert found.able is not any(hitch.blocks for hitch in found.hitches)
    return found


def _settled(tool: str) -> Story:
    """A run that died before its second ask, behind one call of a tool."""
    story = calling((tool, A))
    story.ran()
    return story


def _paused() -> Story:
    """A run that waits for a yes."""
    return calling(("send", A))


def _with(*other: runner.Tool, without: str = "", **changes: object) -> runner.Agent:
    """Today's agent: the tools of old, some of them declared otherwise, one of them gone."""
    named = {tool.name: tool for tool in (*tools.TOOLS, *other)}
    return tools.agent(*(tool for name, tool in named.items() if name != without)).replace(**changes)


@runner.tool(name="push", effect="keyed", remembers=tools.KEPT, timeout=10)
def stricter(cause: str, why: str) -> str:
    """Take one argument more than it did."""
    raise AssertionError(cause, why)


def _raising(_messages: object, _summary: object, _usage: object) -> None:
    message = "no such model"
    raise KeyError(message)


BLOCKED: list[tuple[str, Callable[[], Story], runner.Agent, str, str]] = [
    ("gone and tried", lambda: calling(("push", A)), _with(without="push"), "tool-gone", "a person would be asked"),
    (
        "gone before it was tried",
        lambda: calling(("look", A), ("push", A)),
        _with(without="push"),
        "tool-gone",
        "call 1.1 is of push: it would not run",
    ),
    ("gone and used", lambda: _settled("look"), _with(without="look"), "tool-gone", "today's code has no tool look"),
    (
        "another effect",
        lambda: calling(("push", A)),
        _with(tools.make("push", "once")),
        "effect-changed",
        "call 1.0 of push was marked as keyed, today's tool is once",
    ),
    ("other arguments", lambda: calling(("push", A)), _with(stricter), "schema-changed", "today's push can't take"),
    (
        "approvals off with somebody asked",
        _paused,
        _with(approve="off"),
        "policy-changed",
        "would answer 1.0-approve in a person's stead",
    ),
    (
        "a limit that is reached",
        lambda: _settled("look"),
        _with(limits=Limits(turns=1)),
        "policy-changed",
        "today's limit is reached already: 1 of 1 turns used",
    ),
    (
        "a policy that raises",
        lambda: Story(tools.agent()),
        _with(context=_raising),
        "refused",
        "a resume would raise KeyError: 'no such model'",
    ),
    (
        "a model without a price",
        lambda: Story(tools.agent()),
        _with(limits=Limits(dollars=1), model=tools.Priced(most=replay.Bound())),
        "refused",
        "a resume would raise BadAgent",
    ),
]


@pytest.mark.parametrize(("story", "agent", "kind", "says"), [row[1:] for row in BLOCKED], ids=[r[0] for r in BLOCKED])
def test_what_keeps_a_run_from_going_on_is_named(
    story: Callable[[], Story], agent: runner.Agent, kind: str, says: str, runs: Path
) -> None:
    """Known before the deploy, not from the first run that dies of it."""
    found = _preflight(story(), runs, agent)
    assert not found.able
    blocking = [hitch for hitch in found.hitches if hitch.blocks]
    assert kind in {hitch.kind for hitch in blocking}
    assert any(says in hitch.says for hitch in blocking), blocking


NOTED: list[tuple[str, Callable[[], Story], runner.Agent, set[str]]] = [
    ("nothing", lambda: calling(("push", A)), _with(), set()),
    ("a tool it never called is gone", lambda: _settled("look"), _with(without="push"), {"tool-gone"}),
    ("other words", lambda: _settled("look"), _with(instructions="Other."), {"definition-changed"}),
    ("a new tool", lambda: _settled("look"), _with(tools.make("more", "reads")), set()),
    (
        "another effect of what is settled",
        lambda: _settled("push"),
        _with(tools.make("push", "once")),
        {"definition-changed"},
    ),
    (
        "another context policy",
        lambda: _settled("look"),
        _with(context=runner.SummariseAfter(10_000)),
        {"policy-changed"},
    ),
    ("approvals off with nobody asked", lambda: _settled("look"), _with(approve="off"), {"policy-changed"}),
    ("a call that was never valid", lambda: calling(("look", A), ("nope", "{}")), _with(), set()),
    ("arguments that were never valid", lambda: calling(("look", A), ("push", "{}")), _with(), set()),
    ("somebody is asked", _paused, _with(), set()),
]


@pytest.mark.parametrize(("story", "agent", "kinds"), [row[1:] for row in NOTED], ids=[r[0] for r in NOTED])
def test_what_changes_no_decision_keeps_nothing_from_going_on(
    story: Callable[[], Story], agent: runner.Agent, kinds: set[str], runs: Path
) -> None:
    """A preflight that cries wolf is switched off."""
    found = _preflight(story(), runs, agent)
    assert found.able
    assert {hitch.kind for hitch in found.hitches} == kinds


def test_a_limit_that_stopped_the_run_and_still_stands_is_no_matter_of_the_code(runs: Path) -> None:
    """Somebody has to raise it, with the old code as with the new."""
    agent = tools.agent(limits=Limits(turns=1))
    story = calling(("look", A), agent=agent)
    story.ran()
    assert story.state.stopped is not None
    found = _preflight(story, runs, agent)
    assert [(hitch.kind, hitch.blocks) for hitch in found.hitches] == [("stop-stands", False)]


def test_a_run_that_has_used_its_resumes_would_stop_at_once_and_that_is_said(runs: Path) -> None:
    """With the old code as with the new."""
    agent = tools.agent(limits=Limits(resumes=0))
    found = _preflight(calling(("look", A), agent=agent), runs, agent)
    assert [(hitch.kind, hitch.blocks) for hitch in found.hitches] == [("stop-stands", False)]
    assert "0 of 0 resumes used" in found.hitches[0].says


def test_a_pause_without_an_answer_is_not_resumed_and_uses_nothing_up(runs: Path) -> None:
    """What somebody answers gives it a resume that is not counted."""
    agent = tools.agent(limits=Limits(resumes=0))
    assert _preflight(calling(("send", A), agent=agent), runs, agent).hitches == ()


def test_events_of_a_later_version_keep_a_run_from_going_on(runs: Path) -> None:
    """Rolled back after a deploy: this version can read the run, and not carry it on."""
    place = logged(Story(tools.agent()), runs)
    log = eventlog.open(runs, place.name)
    log.append(BEGIN, [b'{"type":"leapt","far":true}'])
    log.close()
    (found,) = runner.preflight(runs, tools.agent(), clock=Fixed())
    assert [hitch.kind for hitch in found.hitches if hitch.blocks] == ["unknown-events"]
    assert "leapt" in found.hitches[0].says


def test_a_damaged_run_is_named_whoever_it_belonged_to(runs: Path) -> None:
    """Nobody can say whose it is, and nobody can carry it on."""
    place = logged(calling(("push", A)), runs)
    segment = place / "seg-000001.jsonl"
    segment.write_bytes(segment.read_bytes().replace(b"do it", b"do is"))
    (found,) = runner.preflight(runs, tools.agent())
    assert (found.able, [hitch.kind for hitch in found.hitches]) == (False, ["unreadable"])


@pytest.fixture
def noted(runs: Path, tmp_path: Path) -> Path:
    """A run that stopped after it had written `note.txt` in its workspace; the workspace."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    with pytest.raises(runner.ModelUnavailable):
        runner.start_sync(agents.noting, "note", runs=runs, run="noted", workspace=workspace)
    return workspace


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda place: (place / "note.txt").write_text("two"), "note.txt (changed)"),
        (lambda place: (place / "note.txt").unlink(), "note.txt (gone)"),
        (lambda place: place.rename(place.with_name("elsewhere")), "is not there"),
    ],
)
def test_a_workspace_that_somebody_changed_keeps_a_run_from_going_on(
    noted: Path, runs: Path, spoil: Callable[[Path], object], says: str
) -> None:
    """The resume would stop there."""
    (before,) = runner.preflight(runs, agents.noting)
    assert (before.run, before.able, before.hitches) == ("noted", True, ())
    spoil(noted)
    (found,) = runner.preflight(runs, agents.noting)
    assert [hitch.kind for hitch in found.hitches if hitch.blocks] == ["workspace-changed"]
    assert says in found.hitches[0].says


def test_looking_changes_nothing_and_needs_no_right_to_write(noted: Path, runs: Path) -> None:
    """It is asked while the old code still runs; what a tool is just writing beside a file stays there."""
    beside = noted / ".tmp-note.txt"
    beside.write_text("half", encoding="utf-8")
    files = {path: path.read_bytes() for path in (*runs.rglob("*"), *noted.iterdir()) if path.is_file()}
    (runs / "noted").chmod(0o500)
    (found,) = runner.preflight(runs, agents.noting)
    (runs / "noted").chmod(0o700)
    assert found.able
    assert {path: path.read_bytes() for path in files} == files


def test_runs_that_are_done_or_stopped_for_good_are_left_out(runs: Path) -> None:
    """There is nothing left to go on with."""
    runner.start_sync(agents.looking, "look", runs=runs, run="done")
    story = Story(agents.looking)
    story.write(replay.RunStopped(reason="StoppedByPerson", final=True, detail="ann"))
    logged(story, runs, "stopped")
    assert runner.preflight(runs, agents.looking) == []
