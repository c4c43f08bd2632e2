"""`refold fork`, and every other command on a fork."""

import json
from pathlib import Path

import click.testing
import pytest
import structlog

import runner
import runner.testing
from runner import triage
from runner._cli import main
from tests.runs import scenes
from tests.runs.scenes import Shop

LOOK = runner.testing.tool_calls(("look", {"what": "a"}))


class Refold:
    """The command in this process."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self.status = 0
        self.err = ""

    def __call__(self, *words: object) -> str:
        """What it prints; `status` and `err` are those of the last one."""
        done = click.testing.CliRunner().invoke(main, [*map(str, words), "--runs", str(self.runs)])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        self.status, self.err = done.exit_code, done.stderr
        structlog.reset_defaults()
        return done.stdout


@pytest.fixture
def refold(runs: Path) -> Refold:
    """The command, for these runs."""
    return Refold(runs)


def pay(ref: str) -> runner.Reply:
    """A reply that pays the invoice."""
    return runner.testing.tool_calls(("pay", {"invoice": "i7", "ref": ref}))


def test_a_fork_is_made_and_says_what_it_is_and_what_it_will_not_do_again(
    refold: Refold, runs: Path, shop: Shop
) -> None:
    """Whoever rewinds reads what the parent did that the new run does not know."""
    scenes.start(shop, LOOK, pay("x"), "over", runs=runs)
    said = refold("fork", "p", "--at", 2, "--run", "f", "--by", "ann")
    assert refold.status == 0, refold.err
    assert 'guarded      2.0 pay {"invoice":"i7","ref":"x"} came to did pay i7' in said
    assert "p, which is done" in said
    assert json.loads(refold("show", "f", "--json"))["parent"] == "p"
    assert "forked from" in refold("show", "f")
    assert [row["run"] for row in json.loads(refold("ls", "--json"))] == ["p", "f"]
    for command in ("verify", "cat", "audit", "show"):
        assert refold(command, "f"), command
        assert refold.status == 0, command
    assert refold("cat", "f").splitlines()[3].count("run_forked") == 1


def test_messages_that_came_after_the_line_are_named_and_not_taken_over(refold: Refold, runs: Path, shop: Shop) -> None:
    """One that waited at the line does go on; of a long one the beginning is told; a fork's fork knows."""
    agent = shop.agent(LOOK, "over")
    with pytest.raises(runner.errors.TurnLimit):
        runner.start_sync(agent.replace(limits=runner.Limits(turns=1)), "do it", runs=runs, run="p")
    runner.send("p", "Before.", "ada", runs=runs)
    at = runner.read_state("p", runs).seq
    runner.send("p", "After. " * 50, "bob\x9b", runs=runs)
    said = refold("fork", "p", "--at", at, "--run", "f")
    assert refold.status == 0, refold.err
    assert "not heard    bob\\x9b: After. After." in said
    assert "Before." not in said
    assert "After. " * 40 not in said
    assert [one.text for one in runner.read_state("f", runs).queue] == ["Before."]
    assert "messages that were not taken over: bob" in refold("audit", "f")
    assert "not heard    bob\\x9b: After." in refold("fork", "f", "--at", 1, "--run", "g")


def test_what_the_fork_guard_asks_is_settled_with_the_parents_result_by_one_word(
    refold: Refold, runs: Path, shop: Shop
) -> None:
    """`done` needs no `--found` where a result is offered, and says so."""
    scenes.start(shop, LOOK, pay("x"), "over", runs=runs)
    refold("fork", "p", "--at", 2, "--run", "f")
    runner.resume_sync("f", shop.agent(LOOK, pay("y"), "paid"), runs=runs)
    page = refold("show", "f")
    assert "did pay i7" in page
    assert f"refold settle f 2.0-settle-1 --runs {runs} done\n" in page
    refold("settle", "f", "2.0-settle-1", "done")
    assert refold.status == 0, refold.err
    done = runner.resume_sync("f", shop.agent(LOOK, pay("y"), "paid"), runs=runs)
    assert isinstance(done, runner.Finished)
    assert shop.done == {"pay i7": 1}


def test_where_nobody_knows_what_it_came_to_done_needs_words(refold: Refold, runs: Path, shop: Shop) -> None:
    """There is no result to take."""
    shop.silent = {"bell 1"}
    scenes.start(shop, LOOK, runner.testing.tool_calls(("bell", {})), runs=runs)
    assert "may have happened" in refold("fork", "p", "--at", 2, "--run", "f")
    runner.resume_sync("f", shop.agent(LOOK, runner.testing.tool_calls(("bell", {})), "over"), runs=runs)
    refold("settle", "f", "2.0-settle-1", "done")
    assert refold.status == 2
    assert "--found" in refold.err
    refold("settle", "f", "2.0-settle-1", "done", "--found", "it rang")
    assert refold.status == 0


def test_what_cannot_be_forked_is_said_in_a_sentence_with_a_hint(refold: Refold, runs: Path, shop: Shop) -> None:
    """Nothing was changed, and the way on is named."""
    scenes.start(shop, LOOK, pay("x"), "over", runs=runs)
    refold("fork", "p", "--at", 99)
    assert (refold.status, "p has no line 99" in refold.err) == (1, True)
    refold("fork", "p", "--at", 0)
    assert (refold.status, "has not begun" in refold.err) == (1, True)
    refold("fork", "p", "--at", 2, "--run", "f")
    refold("fork", "p", "--at", 2, "--run", "g")
    assert (refold.status, "can still go on" in refold.err) == (1, True)
    refold("fork", "nobody", "--at", 2)
    assert refold.status == 1
    refold("fork", "p")
    assert refold.status == 2


def test_the_triage_job_carries_on_a_fork_and_not_what_it_was_forked_from(runs: Path, shop: Shop) -> None:
    """Both began at the same moment, and the parent is over: whichever id sorts first, the fork is the newest run."""
    job = triage.Job.of("m1-done-after-delete", runs)
    first, lower, higher = (f"m1-done-after-delete-20260101-{digit * 8}" for digit in "509")
    scenes.start(shop, LOOK, "over", runs=runs, run=first)
    assert job.newest() == first
    for fork in (lower, higher):
        runner.fork(first if fork == lower else lower, at=2, runs=runs, new=fork)
        assert job.newest() == fork
