"""Preflight: for every unfinished run whether the current code can go on, and what stands in the way."""

import functools
import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

import pytest

import eventlog
import runner
from replay.events import ReplySaved, RunStopped
from replay.messages import CostBound, Reply, ToolCall
from replay.values import Limits
from tests.review.retrace import agents
from tests.review.retrace.histories import calling, logged
from tests.support import tools
from tests.support.story import BEGIN, Story, named

pytestmark = [pytest.mark.fault("upgrade")]

AT = "--agent=tests.review.retrace.agents:"
A = '{"cause": "a"}'


class Fixed(runner.Clock):
    """It is always the same moment: a minute after the stories began."""

    def wall(self) -> datetime:
        """That moment."""
        return BEGIN + timedelta(minutes=1)


def _preflight(story: Story, runs: Path, agent: runner.Agent) -> runner.review.Preflight:
    logged(story, runs)
    (found,) = runner.review.preflight(runs, agent, clock=Fixed())
    assert found.able is not any(issue.blocks for issue in found.issues)
    return found


def _called(*names: str, agent: runner.Agent | None = None) -> Callable[[], Story]:
    """A run whose model called these tools; `name{}`: without an argument. What runs first was marked."""
    calls = [(name.removesuffix("{}"), "{}" if name.endswith("{}") else A) for name in names]
    return lambda: calling(*calls, agent=agent)


def _settled(tool: str) -> Story:
    """A run that died before its second ask, behind one call of a tool."""
    story = calling((tool, A))
    story.ran()
    return story


def _looked() -> Story:
    return _settled("look")


def _paused() -> Story:
    """A run that waits for a yes."""
    return calling(("send", A))


def _doubt(tool: str) -> Callable[[], Story]:
    """A run that died while a call was tried."""

    def told() -> Story:
        story = calling((tool, A))
        story.die()
        return story

    return told


def _with(*other: runner.Tool, without: str = "", **changes: object) -> runner.Agent:
    """The current agent: the tools of old, some of them declared otherwise, one of them gone."""
    named = {tool.name: tool for tool in (*tools.TOOLS, *other)}
    return tools.agent(*(tool for name, tool in named.items() if name != without)).replace(**changes)


@runner.tool(name="push", effect="keyed", key_ttl=tools.KEPT, timeout=10)
def stricter(cause: str, why: str) -> str:
    """Take one argument more than it did."""
    raise AssertionError(cause, why)


def _asking() -> Story:
    """A run that died while its model was asked: nobody knows what that request cost."""
    story = Story(tools.agent())
    story.go()
    assert story.state.ask is not None
    return story


def _unasked(approve: Literal["ask", "off"] = "ask") -> Story:
    """A run that a signal stopped before it asked whether its call may run."""
    story = Story(tools.agent(approve=approve))
    story.go()
    reply = named(Reply(calls=(ToolCall(tool="send", arguments=A),)), 1)
    story.write(ReplySaved(reply=reply), RunStopped(reason="Interrupted", detail="its process was asked to end"))
    return story


def _unasked_off() -> Story:
    """The same, where the policy would have said yes."""
    return _unasked("off")


def _parked() -> Story:
    """A run that a signal stopped before its second ask, as a deploy does."""
    story = _looked()
    story.die()
    story.write(RunStopped(reason="Interrupted", detail="its process was asked to end"))
    return story


def _tried_out() -> Story:
    """A run that died while the service was asked about a call that may not be tried again."""
    story = calling(("put", A), agent=_with(tools.make("put", "idempotent", lookup=True, attempts=1)))
    story.ended("unknown")
    return story


def _only(ok: str) -> runner.Tool:
    """A tool whose schema does not say what arguments it takes."""
    tool = tools.make("push", "keyed")
    tool.validate = lambda values: None if values["cause"] == ok else "no such cause"
    return tool


def _raising(_messages: object, _summary: object, _usage: object) -> None:
    message = "no such model"
    raise KeyError(message)


_once_priced = _with(limits=Limits(dollars=1), model=tools.Priced(most=CostBound()))
_one_turn = tools.agent(limits=Limits(turns=1))
_send = functools.partial(tools.make, "send", "non_idempotent")


def _new() -> Story:
    return Story(tools.agent())


Blocked = tuple[Callable[[], Story], runner.Agent, str, str]
BLOCKED: dict[str, Blocked] = {
    "gone and tried": (_called("push"), _with(without="push"), "tool-gone", "a person would be asked"),
    "gone before": (
        _called("look", "push"),
        _with(without="push"),
        "tool-gone",
        "call 1.1 is of push: it would not run",
    ),
    "gone and used": (_looked, _with(without="look"), "tool-gone", "the current code has no tool look"),
    "another effect": (
        *(_called("push"), _with(tools.make("push", "non_idempotent")), "effect-changed"),
        "call 1.0 of push was marked as keyed, the current tool is non_idempotent",
    ),
    "other arguments": (
        _called("push"),
        _with(stricter),
        "schema-changed",
        "can't take the arguments of call 1.0: its arguments do not fit; ",
    ),
    "arguments that were taken": (_doubt("push"), _with(_only("b")), "schema-changed", "no such cause"),
    "off, asked": (_paused, _with(approve="off"), "policy-changed", "would answer 1.0-approve in a person's stead"),
    "off, unasked": (_unasked, _with(approve="off"), "policy-changed", "would answer 1.0-approve in a person's stead"),
    "on": (_unasked_off, _with(approve="ask"), "policy-changed", "would ask a person 1.0-approve"),
    "turns": (_looked, _one_turn, "limit-reached", "the limit is reached: 1 of 1 turns used"),
    "turns, never said": (_called("push", agent=_one_turn), _one_turn, "limit-reached", "1 of 1 turns used"),
    "turns, parked": (_parked, _one_turn, "limit-reached", "the limit is reached: 1 of 1 turns used"),
    "a lost request": (_asking, _with(limits=Limits(tokens=1_000)), "limit-reached", "1100 of 1000 tokens used"),
    "a raising policy": (_new, _with(context=_raising), "refused", "a resume would raise KeyError: 'no such model'"),
    "no price": (_new, _once_priced, "refused", "a resume would raise BadAgent"),
    "no price while tools run": (_called("push"), _once_priced, "refused", "a resume would raise BadAgent"),
    "no price while somebody is asked": (_paused, _once_priced, "refused", "a resume would raise BadAgent"),
    "renamed": (_paused, _with(name="newly"), "no-agent", "no agent was given for runs of 'agent'"),
    "no lookup": (
        *(_doubt("patch"), _with(tools.make("patch", "non_idempotent")), "lookup-gone"),
        "the current patch has no lookup to ask",
    ),
    "no lookup after the last attempt": (
        *(_tried_out, _with(tools.make("put", "idempotent", attempts=1)), "lookup-gone"),
        "the current put has no lookup to ask",
    ),
    "no approval, asked": (
        *(_paused, _with(_send()), "approval-gone"),
        "call 1.0 of send had to be approved, and the current send asks nobody",
    ),
    "no approval, before": (_called("look", "send"), _with(_send()), "approval-gone", "call 1.1 of send had to be"),
    "no approval for this call": (
        *(_unasked, _with(_send(approval=lambda _: False)), "approval-gone"),
        "call 1.0 of send had to be approved",
    ),
    "no intent": (
        *(_called("pay"), _with(tools.make("pay", "keyed", approval=True)), "once-per-changed"),
        "was to happen once per",
    ),
}


@pytest.mark.parametrize(("story", "agent", "kind", "says"), BLOCKED.values(), ids=BLOCKED)
def test_what_keeps_a_run_from_going_on_is_named(
    story: Callable[[], Story], agent: runner.Agent, kind: str, says: str, runs: Path
) -> None:
    """Known before the deploy, not from the first run that dies of it."""
    found = _preflight(story(), runs, agent)
    assert not found.able
    blocking = [issue for issue in found.issues if issue.blocks]
    assert kind in {issue.kind for issue in blocking}
    assert any(says in issue.says for issue in blocking), blocking


NOTED: dict[str, tuple[Callable[[], Story], runner.Agent, str]] = {
    "nothing": (_called("push"), _with(), ""),
    "a tool it never called is gone": (_looked, _with(without="push"), "tool-gone"),
    "other words": (_looked, _with(instructions="Other."), "definition-changed"),
    "a new tool": (_looked, _with(tools.make("more", "reads")), ""),
    "another effect of what is settled": (
        *(lambda: _settled("push"), _with(tools.make("push", "non_idempotent"))),
        "definition-changed",
    ),
    "another context policy": (_looked, _with(context=runner.SummariseAfter(10_000)), "policy-changed"),
    "approvals off with nobody asked": (_looked, _with(approve="off"), "policy-changed"),
    "a call that was never valid": (_called("look", "nope{}"), _with(), ""),
    "arguments that were never valid": (_called("look", "push{}"), _with(), ""),
    "arguments that were never valid, for a tool that changed otherwise": (
        *(_called("look", "push{}"), _with(tools.make("push", "keyed", lookup=True))),
        "definition-changed",
    ),
    "somebody is asked": (_paused, _with(), ""),
}


@pytest.mark.parametrize(("story", "agent", "kind"), NOTED.values(), ids=NOTED)
def test_what_changes_no_decision_keeps_nothing_from_going_on(
    story: Callable[[], Story], agent: runner.Agent, kind: str, runs: Path
) -> None:
    """A preflight that cries wolf is switched off."""
    found = _preflight(story(), runs, agent)
    assert found.able
    assert {issue.kind for issue in found.issues} == {*([kind] if kind else [])}


def test_a_limit_that_stopped_the_run_and_still_stands_is_no_matter_of_the_code(runs: Path) -> None:
    """Somebody has to raise it, with the old code as with the new."""
    agent = tools.agent(limits=Limits(turns=1))
    story = calling(("look", A), agent=agent)
    story.ran()
    assert story.state.stopped is not None
    found = _preflight(story, runs, agent)
    assert [(issue.kind, issue.blocks) for issue in found.issues] == [("stop-stands", False)]


@pytest.mark.fault("a deploy that stops runs at once")
def test_a_run_that_has_used_its_resumes_would_stop_at_once(runs: Path) -> None:
    """Somebody has to raise the limit first."""
    agent = tools.agent(limits=Limits(resumes=0))
    story = calling(("look", A), agent=agent)
    story.die()
    found = _preflight(story, runs, agent)
    assert [(issue.kind, issue.blocks) for issue in found.issues] == [("limit-reached", True)]
    assert "0 of 0 resumes used" in found.issues[0].says


def test_a_pause_without_an_answer_is_not_resumed_and_uses_nothing_up(runs: Path) -> None:
    """What somebody answers gives it a resume that is not counted."""
    agent = tools.agent(limits=Limits(resumes=0))
    assert _preflight(calling(("send", A), agent=agent), runs, agent).issues == ()


def test_a_fork_needs_the_tools_that_its_parent_used_after_the_line(runs: Path) -> None:
    """Under another name the same payment would be no repeat."""
    parent = calling(("push", A))
    parent.ran()
    logged(parent, runs)
    assert runner.fork("r", at=2, runs=runs, new="f").fork_guard
    (found,) = runner.review.preflight(runs, _with(without="push"), clock=Fixed())
    assert ("tool-gone", True) in {(issue.kind, issue.blocks) for issue in found.issues}
    (found,) = runner.review.preflight(runs, _with(), clock=Fixed())
    assert found.able


def test_events_of_a_later_version_keep_a_run_from_going_on(runs: Path) -> None:
    """Rolled back after a deploy: this version can read the run, and not carry it on."""
    place = logged(Story(tools.agent()), runs)
    log = eventlog.store(runs).open(place.name)
    log.append(BEGIN, [b'{"type":"leapt","far":true}'])
    log.close()
    (found,) = runner.review.preflight(runs, tools.agent(), clock=Fixed())
    assert [issue.kind for issue in found.issues if issue.blocks] == ["unknown-events"]
    assert "leapt" in found.issues[0].says


def test_a_damaged_run_is_named_whoever_it_belonged_to(runs: Path) -> None:
    """Nobody can say whose it is, and nobody can carry it on."""
    place = logged(calling(("push", A)), runs)
    segment = place / "seg-000001.jsonl"
    segment.write_bytes(segment.read_bytes().replace(b"do it", b"do is"))
    (found,) = runner.review.preflight(runs, tools.agent())
    assert (found.able, [issue.kind for issue in found.issues]) == (False, ["unreadable"])


@pytest.fixture
def noted(runs: Path, tmp_path: Path) -> Path:
    """A run that stopped after it had written `note.txt` in its workspace; the workspace."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    with pytest.raises(runner.errors.ModelUnavailable):
        runner.start_sync(agents.noting, "note", runs=runs, run="noted", workspace=workspace)
    return workspace


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda place: (place / "note.txt").write_text("two"), "note.txt (changed)"),
        (lambda place: (place / "note.txt").unlink(), "note.txt (gone)"),
        (lambda place: place.rename(place.with_name("elsewhere")), "is not there"),
        (lambda place: place.symlink_to(place.rename(place.with_name("elsewhere"))), "is not there"),
    ],
)
def test_a_workspace_that_somebody_changed_keeps_a_run_from_going_on(
    noted: Path, runs: Path, spoil: Callable[[Path], object], says: str
) -> None:
    """The resume would stop there."""
    (before,) = runner.review.preflight(runs, agents.noting)
    assert (before.run, before.able, before.issues) == ("noted", True, ())
    spoil(noted)
    (found,) = runner.review.preflight(runs, agents.noting)
    assert [issue.kind for issue in found.issues if issue.blocks] == ["workspace-changed"]
    assert says in found.issues[0].says


def test_looking_changes_nothing_and_needs_no_right_to_write(noted: Path, runs: Path) -> None:
    """It is asked while the old code still runs; what a tool is just writing beside a file stays there."""
    beside = noted / f".refold-tmp-{hashlib.sha256(b'note.txt').hexdigest()[:16]}"
    beside.write_text("half", encoding="utf-8")
    files = {path: path.read_bytes() for path in (*runs.rglob("*"), *noted.iterdir()) if path.is_file()}
    (runs / "noted").chmod(0o500)
    (found,) = runner.review.preflight(runs, agents.noting)
    (runs / "noted").chmod(0o700)
    assert found.able
    assert {path: path.read_bytes() for path in files} == files


def test_runs_that_are_done_or_stopped_for_good_are_left_out(runs: Path) -> None:
    """There is nothing left to go on with."""
    runner.start_sync(agents.looking, "look", runs=runs, run="done")
    story = Story(agents.looking)
    story.write(RunStopped(reason="StoppedByPerson", final=True, detail="ann"))
    logged(story, runs, "stopped")
    assert runner.review.preflight(runs, agents.looking) == []
