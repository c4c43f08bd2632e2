"""What a person at a terminal sees and may type: a live view, questions whose default is No, nothing that it obeys."""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len

import eventlog
import runner
from replay import Question
from tests.cli import agents, scenes
from tests.cli.conftest import Agent, Refold
from tests.support.terminal import Terminal
from tests.support.unmeasured import SILENT

_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def _plain(text: str) -> str:
    return _CONTROLS.sub("", text)


@pytest.fixture
def meeting(tmp_path: Path) -> Iterator[Path]:
    """Where a process says that it began, and is told to go on."""
    place = tmp_path / "meeting"
    place.mkdir()
    yield place
    (place / "go").touch()


def _asked(runs: Path) -> Question:
    (run,) = eventlog.store(runs).names()
    (question,) = runner.read_state(run, runs).questions.values()
    return question


def test_the_live_view_shows_the_call_its_clock_and_what_a_death_would_mean(
    runs: Path, tmp_path: Path, meeting: Path
) -> None:
    """In forty columns, without colours when they are unwanted, and gone when the answer comes."""
    words = ("run", "meet \u4f60\u597d", Agent("meeting"), "--runs", runs, "--max-dollars", 2)
    with Terminal(*words, cwd=tmp_path, columns=40, env={"MEETING": str(meeting), "NO_COLOR": "1"}) as terminal:
        terminal.until("1.0 attempt 1 of meet")
        terminal.until("Ctrl-C parks the run")
        for text in ("turn 1", "of $2.0000", "if this process dies now: a repeat"):
            assert text in " ".join(_plain(terminal.seen).split())
        terminal.until(re.compile(r"1\.0 attempt 1 of meet [1-9]\d* s"))
        (meeting / "go").touch()
        assert terminal.end() == 0
    shown = _plain(terminal.seen).rstrip()
    assert shown.endswith("We met.")
    (run,) = eventlog.store(runs).names()
    assert f"{run}: done, turn 2," in shown.replace("\r\n", "")
    assert not re.search(r"\x1b\[[0-9;]*\b(3|4|9)[0-7]m", terminal.seen)
    assert max(cell_len(line) for line in _plain(terminal.seen).splitlines()) <= 40


@pytest.mark.fault("invisible characters")
def test_the_models_text_is_shown_as_it_comes_and_nothing_of_it_is_obeyed(
    runs: Path, tmp_path: Path, meeting: Path
) -> None:
    """Before the reply is there: the model waits until its text was seen."""
    words = ("run", "speak", Agent("speaking"), "--runs", runs)
    with Terminal(*words, cwd=tmp_path, columns=200, env={"MEETING": str(meeting)}) as terminal:
        terminal.until("| I think \\x1b[31mred\\x1b[0m \\x9b2J \\u202eturned\\u202c")
        (meeting / "go").touch()
        assert terminal.end() == 0
    assert "\x1b[31m" not in terminal.seen
    assert "\u202e" not in terminal.seen
    assert _plain(terminal.seen).rstrip().endswith("I said it.")


def test_ctrl_c_parks_and_the_call_in_flight_may_end(runs: Path, tmp_path: Path, meeting: Path) -> None:
    """Once is a request, and the view says that it was heard: the result of what was running is kept."""
    words = ("run", "meet me", Agent("meeting"), "--runs", runs)
    with Terminal(*words, cwd=tmp_path, env={"MEETING": str(meeting)}) as terminal:
        terminal.until("attempt 1 of meet")
        terminal.type("\x03")
        terminal.until("parking: calls in flight may finish first")
        (meeting / "go").touch()
        assert terminal.end() == 1
    (run,) = eventlog.store(runs).names()
    assert "Interrupted" in terminal.seen
    state = runner.read_state(run, runs)
    assert state.in_doubt == ()
    assert state.stopped is not None
    assert state.stopped.reason == "Parked", "no worker of this directory carries it on"


def test_ctrl_c_twice_parks_too_and_leaves_the_call_in_doubt(runs: Path, tmp_path: Path, meeting: Path) -> None:
    """Nothing is waited for, and no worker of this directory takes the run from the person's hands."""
    words = ("run", "meet me", Agent("meeting"), "--runs", runs)
    with Terminal(*words, cwd=tmp_path, env={"MEETING": str(meeting)}) as terminal:
        terminal.until("attempt 1 of meet")
        terminal.type("\x03")
        terminal.until("parking: calls in flight may finish first")
        terminal.type("\x03")
        terminal.until("stopped at once")
        assert terminal.end() == 1
    (run,) = eventlog.store(runs).names()
    with pytest.raises(runner.errors.Parked):  # the park lies in the inbox, or was taken
        runner.run_sync(agents.meeting, "meet me", run=run, runs=runs)
    assert runner.read_state(run, runs).in_doubt == ("1.0",)


def test_where_the_terminal_is_dumb_progress_is_plain_lines(runs: Path, tmp_path: Path) -> None:
    """An editor's shell draws nothing; it gets the lines that a file gets."""
    with Terminal("run", "look", Agent("plain"), "--runs", runs, cwd=tmp_path, env={"TERM": "dumb"}) as terminal:
        assert terminal.end() == 0
    assert "\x1b" not in terminal.seen
    assert "1.0 look: ran: {" in terminal.seen


@pytest.mark.parametrize(
    ("typed", "status", "answer"),
    [
        ("\n", 0, "refuse"),
        ("what?\nyes\n", 0, "approve"),
        ("\x04", 3, None),
        ("\x03", 3, None),
    ],
    ids=["enter", "nonsense-then-yes", "end-of-input", "ctrl-c"],
)
def test_an_approval_is_asked_with_its_exact_arguments_and_the_default_is_no(
    runs: Path, tmp_path: Path, typed: str, status: int, answer: str | None
) -> None:
    """Whoever hits Enter without reading has not agreed; whoever leaves has decided nothing."""
    with Terminal("run", "pay", Agent("paying"), "--runs", runs, cwd=tmp_path, columns=100) as terminal:
        terminal.until("May pay run? [y/N, edit, respond, always] ")
        assert '{"amount":7,"to":"ann"}' in terminal.seen
        terminal.type(typed)
        assert terminal.end() == status
    given = _asked(runs).answer
    assert (given.answer if given is not None else None) == answer


@pytest.mark.parametrize(
    ("typed", "answer", "rule"),
    [
        (["edit", "nonsense", '{"to": "bob", "amount": 1}'], ("edit", '{"to": "bob", "amount": 1}', ""), None),
        (["respond", "", "She has it."], ("respond", None, "She has it."), None),
        (["always", ""], ("approve", None, ""), {"to": '"ann"', "amount": "7"}),
        (["always", '{"to": "ann"}'], ("approve", None, ""), {"to": '"ann"'}),
        (["edit", "\x04"], None, None),
    ],
    ids=["edit", "respond", "always-these", "always-some", "gave-up"],
)
def test_an_approval_offers_all_that_the_commands_do(
    runs: Path, tmp_path: Path, typed: list[str], answer: tuple[str, str | None, str] | None, rule: object
) -> None:
    """What does not fit is asked for again; Enter after always means the very arguments that were shown."""
    with Terminal("run", "pay", Agent("paying"), "--runs", runs, cwd=tmp_path, columns=100) as terminal:
        terminal.until("May pay run? [y/N, edit, respond, always] ")
        for line in typed:
            terminal.type(line if line == "\x04" else f"{line}\n")
        assert terminal.end() == (0 if answer is not None else 3)
    given = _asked(runs).answer
    assert (given and (given.answer, given.arguments, given.text)) == answer
    (run,) = eventlog.store(runs).names()
    rules = runner.read_state(run, runs).rules
    assert [one.arguments for one in rules] == ([rule] if rule is not None else [])


def test_what_was_typed_before_the_question_does_not_answer_it(runs: Path, tmp_path: Path, meeting: Path) -> None:
    """Nobody says yes to what they have not seen."""
    words = ("run", "meet", Agent("meeting_then_paying"), "--runs", runs)
    with Terminal(*words, cwd=tmp_path, columns=100, env={"MEETING": str(meeting)}) as terminal:
        terminal.until("1.0 attempt 1 of meet")
        terminal.type("y\ny\n")
        (meeting / "go").touch()
        terminal.until("May pay run? [y/N, edit, respond, always] ")
        terminal.type("n\n")
        assert terminal.end() == 0
    given = _asked(runs).answer
    assert given is not None
    assert given.answer == "refuse"


def test_sigterm_at_a_question_leaves_it_open(runs: Path, tmp_path: Path) -> None:
    """A deploy must not wait for somebody who went home, nor answer for them."""
    with Terminal("run", "pay", Agent("paying"), "--runs", runs, cwd=tmp_path, env=SILENT) as terminal:
        terminal.until("May pay run? [y/N, edit, respond, always] ")
        terminal.child.send_signal(signal.SIGTERM)
        assert terminal.end() == 3
    assert _asked(runs).answer is None


@pytest.mark.parametrize(
    ("typed", "status", "answer"),
    [(["y\n", "it is up\n"], 0, "done"), (["n\n"], 0, "rerun"), (["\n"], 3, None), (["y\n", "\x04"], 3, None)],
    ids=["it-happened", "it-did-not", "later", "gave-up"],
)
def test_the_ladders_question_is_asked_and_enter_decides_later(
    runs: Path, tmp_path: Path, typed: list[str], status: int, answer: str | None
) -> None:
    """There is no safe default for what happened: only a person who looked can say."""
    run = scenes.killed(runs, "unsure", "unsure-run")
    with Terminal("resume", run, Agent("unsure"), "--runs", runs, cwd=tmp_path) as terminal:
        terminal.until("Did launch happen? [y/n, Enter decides later] ")
        terminal.type(typed[0])
        if len(typed) > 1:
            terminal.until("What was its result? ")
            terminal.type(typed[1])
        assert terminal.end() == status
    given = _asked(runs).answer
    assert (given.answer if given is not None else None) == answer
    if answer == "done":
        assert given is not None
        assert given.text == "it is up"


def test_nothing_that_a_model_wrote_reaches_the_terminal_as_a_control(runs: Path, tmp_path: Path) -> None:
    """Arguments that clear the screen or turn the line around would show another question than the one asked."""
    with Terminal("run", "pay", Agent("loud_asking"), "--runs", runs, cwd=tmp_path, columns=100) as terminal:
        terminal.until("May pay run? [y/N, edit, respond, always] ")
        assert "\\x9b2J\\u202eturned\\u202c" in terminal.seen
        terminal.type("n\n")
        assert terminal.end() == 0
    assert "\x9b" not in terminal.seen
    assert "\u202e" not in terminal.seen


@pytest.mark.parametrize("words", [["ls"], ["show", "loud-run"], ["verify", "loud-run"], ["cat", "loud-run"]])
def test_reading_commands_fit_the_terminal_and_send_it_no_controls(
    runs: Path, tmp_path: Path, words: list[str]
) -> None:
    """Forty columns and characters two cells wide; `cat` alone may be wider, for its lines are the log's."""
    runner.start_sync(agents.loud, f"task {agents.LOUD}", runs=runs, run="loud-run")
    with Terminal(*words, "--runs", runs, cwd=tmp_path, columns=40) as terminal:
        assert terminal.end() == 0
    seen = _plain(terminal.seen)
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u202e\U000e0041]", seen)
    if words[0] == "cat":
        assert [json.loads(line)["seq"] for line in seen.splitlines()][:2] == [0, 1]
        assert "\\u009b" in seen
        assert "\\u200b\\udb40\\udc41" in seen
    else:
        assert max(cell_len(line) for line in seen.splitlines()) <= 40


def test_without_a_terminal_nobody_is_asked(refold: Refold) -> None:
    """A question in a log file that nobody reads would hang a deploy."""
    refold("run", "pay", Agent("paying"), typed="y\n").ends(3, out="waits for a person")
