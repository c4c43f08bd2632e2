"""A call that is open at the line itself: the fork's ladder settles it, with the key in the parent's marker."""

from pathlib import Path

import pytest
from msgspec.structs import replace

import replay
import runner
import runner.testing
from replay.events import AttemptEnded, AttemptMarked, QuestionAsked, ResultRecorded
from tests.runs import scenes
from tests.runs.scenes import Shop
from tests.support import stage


def broken(runs: Path, shop: Shop, tool: str, arguments: dict[str, str], what: str) -> int:
    """A parent whose call acted and got no answer; the line at which it was known to be open."""
    shop.silent = {what}
    scenes.start(shop, runner.testing.tool_calls((tool, arguments)), "over", runs=runs)
    return scenes.seq_of(runs, "p", AttemptEnded)


@pytest.mark.parametrize(
    ("tool", "arguments", "how", "attempts"),
    [
        ("pay", {"invoice": "i7", "ref": "x"}, "ran", 2),
        ("put", {"what": "a"}, "ran", 2),
        ("send", {"to": "ada"}, "found", 1),
    ],
)
def test_the_ladder_settles_it_with_the_key_in_the_marker(
    runs: Path, shop: Shop, tool: str, arguments: dict[str, str], how: str, attempts: int
) -> None:
    """A key made of the fork's own id would be another request to the service."""
    what = f"{tool} {next(iter(arguments.values()))}"
    at = broken(runs, shop, tool, arguments, what)
    state = runner.fork("p", at=at, runs=runs, new="f", clock=scenes.Still())
    assert state.in_doubt == ("1.0",)
    done = runner.resume_sync("f", shop.agent("", "over"), runs=runs, clock=scenes.Still())
    assert isinstance(done, runner.Finished)
    marked = [e for e in scenes.events(runs, "f") if isinstance(e, AttemptMarked)]
    assert {e.key for e in marked} == {stage.key(runs, "1.0", "p")}
    assert len(marked) == attempts
    (result,) = [e for e in scenes.events(runs, "f") if isinstance(e, ResultRecorded)]
    assert result.how == how
    assert shop.done[what] == (3 if tool == "put" else 1), "an idempotent call may be repeated, in both"


def test_what_a_retry_sends_besides_the_key_is_its_parents_too(runs: Path, shop: Shop) -> None:
    """A second request under one call has a sub-key, and a lookup may search for the run's name."""
    at = broken(runs, shop, "pay", {"invoice": "i7", "ref": "x"}, "pay i7")
    runner.fork("p", at=at, runs=runs, new="f", clock=scenes.Still())
    agent = shop.agent("", runner.testing.tool_calls(("pay", {"invoice": "i8", "ref": "x"})), "over")
    runner.resume_sync("f", agent, runs=runs, clock=scenes.Still())
    assert shop.subkeys[-2:] == [stage.key(runs, "1.0/1", "p"), stage.key(runs, "2.0/1", "f")]
    assert len(set(shop.subkeys[:-1])) == 1


def test_a_person_who_is_asked_is_offered_what_the_parent_found_out_later(runs: Path, shop: Shop) -> None:
    """The ladder's last rung, in the fork, with the answer that the parent already had."""
    at = broken(runs, shop, "bell", {}, "bell 1")
    question = runner.read_state("p", runs).waiting[0]
    runner.settle("p", question.id, "ann", "done", "it rang", runs=runs)
    runner.resume_sync("p", shop.agent("", "over"), runs=runs)
    runner.fork("p", at=at, runs=runs, new="f")
    outcome = runner.resume_sync("f", shop.agent("", "over"), runs=runs)
    assert isinstance(outcome, runner.Paused)
    (asked,) = outcome.questions
    assert asked.guarded == 0
    assert asked.why.startswith("a repeat may do it twice")
    assert asked.why.endswith("came to: it rang")
    runner.settle("f", asked.id, "ann", "done", runs=runs)
    assert isinstance(runner.resume_sync("f", shop.agent("", "over"), runs=runs), runner.Finished)
    assert shop.done == {"bell 1": 1}
    assert [e.text for e in scenes.events(runs, "f") if isinstance(e, ResultRecorded)] == ["it rang"]


def test_a_service_that_misses_what_the_parent_got_a_result_for_is_not_believed(runs: Path, shop: Shop) -> None:
    """The two contradict each other, so nobody but a person can say."""
    at = broken(runs, shop, "send", {"to": "ada"}, "send ada")
    runner.resume_sync("p", shop.agent("", "over"), runs=runs)
    runner.fork("p", at=at, runs=runs, new="f")
    shop.keys.clear()
    outcome = runner.resume_sync("f", shop.agent("", "over"), runs=runs)
    assert isinstance(outcome, runner.Paused)
    assert outcome.questions[0].guarded == 0
    assert shop.done == {"send ada": 1}


def test_a_retry_that_the_parent_made_after_the_line_is_not_made_again(runs: Path) -> None:
    """At the line the call had certainly done nothing and waited; then the parent's second attempt acted."""
    tries: list[int] = []

    @runner.tool(effect="non_idempotent")
    def ring(call: runner.Call) -> str:
        """Ring, at the second try."""
        tries.append(call.n)
        if call.n == 1:
            busy = "busy"
            raise runner.ToolFailed(busy, retry_after=5)
        return "rang"

    def agent() -> runner.Agent:
        return runner.Agent(
            name="agent",
            model=runner.testing.ScriptedModel([runner.testing.tool_calls(("ring", {})), "over"]),
            tools=[ring],
        )

    runner.start_sync(agent(), "do it", runs=runs, run="p", clock=scenes.Still())
    at = scenes.seq_of(runs, "p", AttemptEnded)
    assert runner.fork("p", at=at, runs=runs, new="f").in_doubt == ()
    outcome = runner.resume_sync("f", agent(), runs=runs)
    assert isinstance(outcome, runner.Paused)
    assert outcome.questions[0].guarded == 0
    assert tries == [1, 2]


def test_a_question_about_an_open_call_names_nothing_that_the_fork_guard_does_not_have(runs: Path, shop: Shop) -> None:
    """Its answer would be looked for there."""
    broken(runs, shop, "bell", {}, "bell 1")
    at = scenes.seq_of(runs, "p", QuestionAsked)
    events = [replay.decode(raw) for raw in scenes.lines(runs, "p")[at].events]
    state = replay.load(scenes.lines(runs, "p")[:at])
    (question,) = [event for event in events if isinstance(event, QuestionAsked)]
    state = replay.fold(state, scenes.NOON, events[: events.index(question)])
    replay.step(state, question, scenes.NOON)
    with pytest.raises(replay.IllegalEvent, match="the fork guard holds no such effect"):
        replay.step(state, replace(question, guarded=0), scenes.NOON)
