"""`refold approve`, `refuse`, `settle` and `stop`: a person's word, once, from any process."""

import os
import pwd
from pathlib import Path

import pytest

import eventlog
import runner
from tests.cli import agents, scenes
from tests.cli.conftest import Agent, Refold
from tests.support import stage

HOST = os.uname().nodename


def _who(runs: Path, run: str) -> str:
    """Who answered the run's approval."""
    answer = runner.read_state(run, runs).questions["1.0-approve"].answer
    assert answer is not None
    return answer.who


def test_each_decision_and_a_message_have_their_command(refold: Refold, runs: Path) -> None:
    """What each comes to is the library's affair; here it reaches it, or is refused in a sentence."""
    run = scenes.asking(runs)
    (question,) = runner.read_state(run, str(runs)).waiting
    assert refold("edit", run, question.id, "[1]").status == 2
    assert "waits for its next request" in refold("send", run, "Hurry.", "--by", "ada").out
    assert "is allowed by ada" in refold("allow", run, "pay", "--with", '{"to": "bob"}', "--by", "ada").out
    said = refold("edit", run, question.id, '{"amount": 1, "to": "ann"}', "--by", "ada")
    said.ends(0, out=["edited by ada", "No question is open", "If the tool can't take these arguments, they are asked"])
    state = runner.read_state(run, str(runs))
    assert [rule.arguments for rule in state.rules] == [{"to": '"bob"'}]
    assert [one.text for one in state.queue] == ["Hurry."]
    again = refold("respond", run, question.id, "No need.")
    assert (again.status, "answered before" in again.err) == (1, True)


def test_a_yes_lets_the_run_finish_at_its_next_resume(refold: Refold, runs: Path) -> None:
    """The first process has gone; the answer and the rest of the run come from two others."""
    run = scenes.asking(runs)
    refold("approve", run, "1.0-approve", "--by", "ann").ends(0, out="approved by ann")
    assert _who(runs, run) == "ann"
    refold("resume", run, Agent("paying")).ends(0, "Ann has it.\n")


def test_a_no_reaches_the_model_with_its_reason(refold: Refold, runs: Path) -> None:
    """The call never runs; the model reads why."""
    run = scenes.asking(runs)
    assert refold("refuse", run, "1.0-approve", "--by", "ann", "--reason", "too much").status == 0
    refold("resume", run, Agent("paying")).ends(0, err="refused: ann refused this call: too much")


def test_a_yes_for_a_tool_that_is_gone_runs_nothing_and_the_resume_says_so(refold: Refold, runs: Path) -> None:
    """The process that answers knows no code; the one that carries the run on does, and tells the model too."""
    run = scenes.asking(runs)
    refold("approve", run, "1.0-approve", "--by", "ann").ends(0)
    refold("resume", run, Agent("paying_nobody")).ends(0, "Ann has it.\n", err="there is no tool named 'pay'")
    assert "where the code has its tool no more, it does not run" in " ".join(refold("approve", "--help").out.split())


@pytest.mark.fault("an answer that is left loses to one that the process which holds the run gives itself")
def test_an_answer_that_was_left_and_came_second_is_told_by_the_audit(refold: Refold, runs: Path) -> None:
    """The command that left it says where to look."""
    left = []

    class Slow:
        def __str__(self) -> str:  # while the answer of this process is being made, another person answers
            left.append(refold("refuse", "r", "1.0-approve", "--by", "bob"))
            return "ann"

    def edits(_: runner.Question) -> runner.Answer:
        return runner.Answer("edit", "ada", arguments={"amount": 1, "to": Slow()})

    runner.start_sync(agents.paying, "pay ann", runs=runs, run="r", on_question=edits).finished()
    left[0].ends(0, out=["refused by bob; left for process", "`refold audit r` tells what came of it"])
    told = " ".join(refold("audit", "r").out.split())
    assert "question 1.0-approve of r was answered before: edit, by ada" in told
    assert "answer-1.0-approve" in told


def test_the_account_is_named_when_nobody_else_is(process: Refold, runs: Path) -> None:
    """It needs no HOME and no USER, and believes neither."""
    run = scenes.asking(runs)
    assert process("approve", run, "1.0-approve", env={"HOME": "", "USER": "mallory", "LOGNAME": "mallory"}).status == 0
    assert _who(runs, run) == pwd.getpwuid(os.getuid()).pw_name


def test_an_answer_says_which_questions_are_still_open(refold: Refold, runs: Path) -> None:
    """A run goes on only when every question has its answer."""
    run = scenes.asking(runs, agent=agents.paying_twice)
    assert "Still open: 1.1-approve" in refold("approve", run, "1.0-approve").out
    assert "carries the run on" in refold("refuse", run, "1.1-approve").out


def test_the_first_answer_wins(refold: Refold, runs: Path) -> None:
    """Two people may type at the same time; the second is told, and nothing changes."""
    run = scenes.asking(runs)
    refold("approve", run, "1.0-approve", "--by", "ann")
    refold("refuse", run, "1.0-approve", "--by", "bob").ends(1, err="answered before: approve, by ann")


def test_an_answer_of_the_wrong_kind_or_to_no_question_is_refused(refold: Refold, runs: Path) -> None:
    """An approval is no statement about what happened."""
    run = scenes.asking(runs)
    refold("settle", run, "1.0-approve", "rerun").ends(1, err="of kind approve")
    refold("approve", run, "9.9-approve").ends(1, err="has no question 9.9-approve")
    assert runner.read_state(run, runs).waiting


def _unsettled(refold: Refold, runs: Path) -> tuple[str, str]:
    """A run whose call may have happened and can't be looked up, and the ladder's question about it."""
    run = scenes.killed(runs, "unsure", "unsure-run")
    said = refold("resume", run, Agent("unsure")).ends(3)
    (question,) = runner.read_state(run, runs).waiting
    assert f"refold settle {run} {question.id} --runs {runs} rerun" in said.out
    return run, question.id


def test_what_a_person_found_becomes_the_calls_result(refold: Refold, runs: Path) -> None:
    """The call is not run again: it happened."""
    run, question = _unsettled(refold, runs)
    assert refold("settle", run, question, "done", "--found", "it is up there").status == 0
    refold("resume", run, Agent("unsure")).ends(0, "It flies.\n", err="stated: it is up there")


def test_a_persons_rerun_runs_the_call_again(refold: Refold, runs: Path) -> None:
    """They say that every attempt so far did nothing."""
    run, question = _unsettled(refold, runs)
    assert refold("settle", run, question, "rerun").status == 0
    refold("resume", run, Agent("unsure")).ends(0, "It flies.\n", err="ran: launched")


def test_done_needs_what_was_found_and_rerun_has_nothing(refold: Refold, runs: Path) -> None:
    """A result that nobody gave must not be made up."""
    run, question = _unsettled(refold, runs)
    assert refold("settle", run, question, "done").status == 2
    assert refold("settle", run, question, "rerun", "--found", "x").status == 2
    assert refold("settle", run, question, "perhaps").status == 2
    assert runner.read_state(run, runs).waiting


def test_stop_is_for_good_and_lists_the_open_calls(refold: Refold, runs: Path) -> None:
    """What may have happened is the one thing a person must still look after."""
    run = scenes.killed(runs, "unsure", "unsure-run")
    refold("stop", run, "--by", "ann").ends(
        0, out=["in doubt: 1.0 launch may have happened", stage.key(runs, "1.0", run)]
    )
    refold("resume", run, Agent("unsure")).ends(1, err=["StoppedByPerson", "by ann"])


def test_stop_says_when_nothing_is_open_and_refuses_what_is_over(refold: Refold, runs: Path) -> None:
    """Stopping twice, or what is done, would only hide what happened."""
    run = scenes.stopped(runs)
    assert "No call is in doubt" in refold("stop", run).out
    assert refold("stop", run).status == 1
    refold("stop", scenes.finished(runs)).ends(1, err="it is done")


def test_what_is_said_to_a_live_run_is_left_for_the_process_that_holds_it(
    refold: Refold, runs: Path, tmp_path: Path
) -> None:
    """Nobody waits for a lock; and a second person is told who was first."""
    with scenes.live(runs, tmp_path) as (child, place):
        (run,) = eventlog.store(runs).names()
        refold("stop", run, "--by", "ann").ends(
            0,
            f"The stop of {run} by ann is left for process {child.pid} on {HOST}; "
            f"`refold audit {run}` tells what came of it.\n",
        )
        refold("stop", run, "--by", "bob").ends(1, err="ann asked for that before")
        (place / "go").touch()
        child.wait(timeout=90)


def test_park_holds_a_run_back_and_names_the_command_that_carries_it_on(refold: Refold, runs: Path) -> None:
    """Nothing else does: not an answer, and not `resume --all`."""
    run = scenes.asking(runs)
    said = refold("park", run, "--by", "ann").ends(
        0, out=f"refold resume {run} --agent MODULE:ATTRIBUTE --runs {runs}\n"
    )
    assert said.out.startswith(f"{run} stopped (Parked): by ann\n")
    assert refold("approve", run, "1.0-approve").status == 0
    assert refold("resume", "--all", Agent("paying")).status == 0
    assert runner.read_state(run, runs).phase == "paused"
    assert refold("resume", run, Agent("paying")).out == "Ann has it.\n"


def test_a_pause_and_a_park_are_said_in_the_same_words_by_every_command(refold: Refold) -> None:
    """Whoever reads two of them must not wonder whether they mean two things."""
    said = refold("run", "pay ann", Agent("paying"), "--run", "r").ends(3, out="r waits for a person:\n")
    assert said.err.endswith(" paused, waits for a person\n")
    refold("resume", "r", Agent("paying")).ends(3, out="r waits for a person:\n")
    refold("show", "r").ends(0, out="phase       paused, waits for a person\n")
    refold("inbox").ends(0, out="r waits for a person since ")
    refold("audit", "r").ends(0, out=": paused, waits for a person, ")
    parked = "stopped (Parked)"
    for words in (["park", "r"], ["show", "r"], ["ls"], ["audit", "r"]):
        refold(*words).ends(0, out=parked)
    refold("run", "pay ann", Agent("paying"), "--run", "r").ends(1, err=parked)


def test_the_inbox_lists_what_all_runs_ask_oldest_first_with_the_commands_that_answer(
    refold: Refold, runs: Path
) -> None:
    """Whoever answers need not know the runs; what is over asks nothing."""
    first, second = scenes.asking(runs, "b-run"), scenes.asking(runs, "a-run", agent=agents.paying_twice)
    refold("stop", scenes.asking(runs, "over"))
    scenes.damage(runs, scenes.asking(runs, "damaged"))
    scenes.finished(runs)
    rows = refold("inbox", "--json").json
    assert [(row["run"], row["id"]) for row in rows if row["run"] != "damaged"] == [
        (first, "1.0-approve"),
        (second, "1.0-approve"),
        (second, "1.1-approve"),
    ]
    page = refold("inbox").out
    for row in rows:
        for command in row["commands"]:
            assert command in page
    assert '"amount":8' in page.replace(" ", "")
    refold(*rows[0]["commands"][0].split()[1:]).ends(0)
    assert (first, "1.0-approve") not in [(row["run"], row["id"]) for row in refold("inbox", "--json").json]
