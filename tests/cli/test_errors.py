"""Every error is a sentence, a hint and a status; nobody gets a traceback for bad input."""

import errno
import pickle
from datetime import UTC, datetime
from pathlib import Path

import pytest

import eventlog
import replay
import runner
from runner import triage
from runner._cli._io import errors
from runner._cli._io.errors import Refused, Status
from tests.cli import scenes
from tests.cli.conftest import Agent, Refold

RUN = "a-run"
EVERY = [
    ["show", RUN],
    ["show", RUN, "--json"],
    ["show", RUN, "--follow"],
    ["cat", RUN],
    ["verify", RUN],
    ["verify", RUN, "--json"],
    ["stop", RUN],
    ["approve", RUN, "1.0-approve"],
    ["refuse", RUN, "1.0-approve"],
    ["settle", RUN, "1.0-settle-1", "rerun"],
    ["resume", RUN, str(Agent("plain"))],
]
LISTS = [["ls"], ["ls", "--json"], ["resume", "--all", str(Agent("plain"))]]


def _named(words: list[str]) -> str:
    return " ".join(words[:1] + words[2:])


@pytest.mark.parametrize("words", EVERY, ids=_named)
@pytest.mark.parametrize("there", [True, False], ids=["no-such-run", "no-such-directory"])
def test_a_run_that_is_not_there_is_a_sentence(refold: Refold, runs: Path, words: list[str], there: bool) -> None:
    """The commonest mistake after a spelling mistake: the right run in the wrong directory."""
    if there:
        runs.mkdir()
    refold(*words).ends(1, "", err=[f"there is no run {RUN} in {runs}", "--runs DIR"])
    assert not (runs / RUN).exists()


@pytest.mark.parametrize(
    ("typed", "hint"), [("shwo", " Did you mean show?"), ("resme", " Did you mean resume?"), ("xyz", "")]
)
def test_a_command_that_is_not_there_is_a_sentence_that_names_the_one_that_was_meant(
    refold: Refold, typed: str, hint: str
) -> None:
    """If a name is near enough."""
    refold(typed).ends(2, "", err=f"No such command '{typed}'.{hint}\n")


@pytest.mark.parametrize("words", [*EVERY, *LISTS, ["run", "x", str(Agent("plain"))]], ids=_named)
def test_a_runs_directory_that_is_a_file_is_a_sentence(refold: Refold, runs: Path, words: list[str]) -> None:
    """The file stays as it is."""
    runs.write_text("precious")
    refold(*words).ends(1, "", err=f"{runs} is no place of runs")
    assert runs.read_text() == "precious"


@pytest.mark.fault("bad run id")
@pytest.mark.parametrize("run", ["../x", "a/b", "a\\b", "", ".", "..", "x" * 300, "a\nb", "con", "A", "e\u0301"])
def test_a_run_id_that_can_not_be_one_is_refused_before_the_file_system(refold: Refold, runs: Path, run: str) -> None:
    """An id that is a path would reach outside the runs. It is shown without what a terminal would obey."""
    for command in ("show", "cat", "verify", "stop"):
        refold(command, "--", run).ends(2, err="is no run id")
    assert not runs.exists()


def test_a_directory_that_may_not_be_read_is_a_sentence(
    refold: Refold, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs the tests may read everything, so the refusal comes from the file system's face."""

    def refuse(*_: object) -> None:
        raise eventlog.NotARunsDirectory(str(runs), "Permission denied")

    monkeypatch.setattr(eventlog.Directory, "names", refuse)
    refold("ls").ends(1, err="Permission denied")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (eventlog.LogDamaged(RUN, "seg", 1, 2, 3, "why"), Status.DAMAGED),
        (replay.IllegalEvent(3, "tag", "model", "why"), Status.DAMAGED),
        (replay.Undecodable(3, "why"), Status.DAMAGED),
        (eventlog.RunLocked(RUN, 7, "host", datetime.now(UTC)), Status.LOCKED),
        (triage.WorldHeld("world", 7), Status.LOCKED),
        (eventlog.BadRunId("x", "why"), Status.USAGE),
        (runner.BadAgent("why"), Status.USAGE),
        (runner.BadTool("tool", "why"), Status.USAGE),
        (triage.NoSuchTask("t", ("a",)), Status.USAGE),
        (triage.NoSuchTool("t", ("a",)), Status.USAGE),
        (eventlog.NoSuchRun(RUN, "runs"), Status.FAILED),
        (eventlog.DiskFull(RUN, "why"), Status.FAILED),
        (runner.errors.TurnLimit(RUN, "why"), Status.FAILED),
        (Refused("why", status=Status.LOCKED), Status.LOCKED),
        (OSError(errno.EACCES, "Permission denied", "file"), Status.FAILED),
        (ZeroDivisionError(), Status.FAILED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_each_error_has_its_status_and_its_sentence(
    error: Exception, status: Status, capsys: pytest.CaptureFixture[str]
) -> None:
    """The statuses are a promise that scripts are built on."""
    assert errors.status(error) == status
    errors.say(error)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("refold: ")
    assert len(lines[0]) > len("refold: ")
    hint = getattr(error, "hint", "")
    assert not hint or lines[1] == f"  {hint}"


def _spoil(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(runner, "read_state", fail)


def test_an_error_that_no_rule_knows_is_one_sentence_and_a_traceback_on_request(
    refold: Refold, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is our bug then, or an agent's own; whoever looks for it can ask for the place."""
    _spoil(monkeypatch, ZeroDivisionError("division by zero"))
    said = refold("show", RUN).ends(1)
    assert said.err.splitlines()[0] == "refold: ZeroDivisionError: division by zero"
    assert "Traceback" not in said.err
    assert "Traceback" in refold("--verbose", "show", RUN).err


def test_an_error_without_words_is_named(refold: Refold, monkeypatch: pytest.MonkeyPatch) -> None:
    """`refold: ` and nothing else would be the worst sentence of all."""
    _spoil(monkeypatch, ValueError())
    assert refold("show", RUN).err.startswith("refold: ValueError")


def test_a_broken_pipe_is_not_talked_about(monkeypatch: pytest.MonkeyPatch, refold: Refold) -> None:
    """Whoever read the output has gone, and so has the reader of any sentence."""
    _spoil(monkeypatch, BrokenPipeError(errno.EPIPE, "Broken pipe"))
    said = refold("show", RUN)
    assert (said.status, said.err) == (1, "")


def test_refused_survives_pickling() -> None:
    """Like every error here, it carries its data as arguments."""
    back = pickle.loads(pickle.dumps(Refused("why", "hint", Status.LOCKED)))  # noqa: S301 (made in this very line)
    assert (str(back), back.hint, back.exit_status) == ("why", "hint", Status.LOCKED)


def test_reading_commands_write_nothing(refold: Refold, runs: Path) -> None:
    """They must work on a backup, on a read-only disk and beside a live writer."""
    run = scenes.killed(runs, "unsure", "unsure-run")

    def everything() -> dict[str, tuple[int, bytes]]:
        files = [path for path in runs.rglob("*") if path.is_file()]
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = everything()
    modes = {path: path.stat().st_mode for path in (runs, runs / run)}
    for path in modes:
        path.chmod(0o500)
    for words in (["ls"], ["show", run], ["show", run, "--follow"], ["verify", run], ["cat", run]):
        assert refold(*words).status == 0
    for path, mode in modes.items():
        path.chmod(mode)
    assert everything() == before
