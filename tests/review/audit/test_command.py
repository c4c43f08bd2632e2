"""`refold audit` and `refold show --at`: the story of a run, and where it stood once, for people and for programs."""

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

import eventlog
import replay
import runner
from tests.cli import agents
from tests.cli.agents import LOUD
from tests.cli.conftest import Refold
from tests.review.audit import stories
from tests.support.disks import Quick
from tests.support.figures import FIGURES
from tests.support.terminal import Terminal
from tests.support.unmeasured import SILENT

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")

TOLD = """
Life 2  2026-01-01 00:00:40 UTC  resumed by process 2 on h, not counted
  lines 5 to 9, 5.0 s
  Turn 2  model: 0 ms, failed: overloaded, counts at most 1,000 + 100 tokens, $0.5000  (lines 6 to 7)
    waits 4.0 s before asking the model again  (line 7)
  Turn 2  model: 0 ms, ask 2 in a row, 0 + 0 tokens, $0.0000  (lines 8 to 9)
    2.0 push {"cause": "b"}
      attempt 1: keyed, may have acted: its process died in it; key abb80fb8df16cf4f300d0ddda197b53f  (line 9)

(10 min 0 s nobody wrote; life 2 died)

Life 3  2026-01-01 00:10:45 UTC  resumed by process 3 on h, not counted
  lines 10 to 15, 0 ms
    2.0 push {"cause": "b"}
      attempt 2: keyed, 0 ms, returned (again, as a repeat is harmless); key abb80fb8df16cf4f300d0ddda197b53f  (line 11)
      it ran (line 12): pushed
"""


def shelved(runs: Path, text: str = "ok") -> str:
    """A short run."""
    return stories.shelf(stories.plain(text=text, says=text), runs, disk=Quick())


def damage(runs: Path) -> int:
    """Spoil the line that holds the first result; its number."""
    file = runs / stories.RUN / "seg-000001.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"result_recorded"', b'"result_RECORDED"', 1))
    found = eventlog.store(runs).scan(stories.RUN).damage
    assert found is not None
    return found.expected_seq


def test_the_story_tells_lives_turns_calls_attempts_and_what_lay_between(refold: Refold, runs: Path) -> None:
    """Whoever reads it need not read the log."""
    run = stories.shelf(stories.eventful(), runs, disk=Quick())
    said = refold("audit", run).ends(0, out=TOLD)
    for words in (
        "$1.5000 of it the bounds of 3 lost asks",
        "question 4.0-settle-1: did it happen? (the service can't say whether it happened: two match)  (line 21)",
        "answer to 4.0-settle-1: done, by ann, 2026-01-01 01:11:15 UTC: it was patched  (line 22)",
        "      wrote c.txt  (line 18)",
        "Life 5  2026-01-01 01:11:16 UTC  resumed by process 5 on h, not counted, and found the clock set back",
        "(1 d 0 h nobody wrote; life 5 stopped (Interrupted))",
        "Life 6: finished, 2026-01-02 01:11:16 UTC",
        "rerun               9, 11   push (2.0) ran again, attempt 2",
    ):
        assert words in said.out


def test_why_a_run_stopped_is_told_where_it_happened_and_as_a_finding(refold: Refold, runs: Path) -> None:
    """A provider's page of text in every sentence about the stop hides the rest."""
    with pytest.raises(runner.errors.ModelUnavailable):
        runner.start_sync(agents.silent, "look", runs=runs, run="r")
    said = refold("audit", "r")
    assert said.out.count("no such model") == 2
    assert "\n  Turn 1  model: " in said.out
    assert "\nLife 1: stopped (ModelUnavailable), " in said.out
    shown = refold("show", "r").out
    assert "resumes     0 of 10 that may come to nothing\n" in shown
    assert "life" not in shown


def test_a_program_gets_the_story_the_findings_and_the_storage(refold: Refold, runs: Path) -> None:
    """The same facts, none of them cut."""
    run = stories.shelf(stories.eventful(), runs, disk=Quick())
    told = refold("audit", run, "--json").json
    story = replay.audit(eventlog.store(runs).read(run).lines)
    assert [call["id"] for call in told["calls"]] == [call.id for call in story.calls]
    assert [finding["says"] for finding in told["findings"]] == [finding.says for finding in story.findings]
    assert told["storage"]["survives"] in ("power loss", "killed process")
    assert (told["damaged"], told["run"], told["answer"]) == (None, run, "All is done.")
    assert told["lives"][4]["stopped"]["reason"] == "Interrupted"


def test_a_damaged_log_is_told_as_far_as_it_holds_with_the_status_of_damage(refold: Refold, runs: Path) -> None:
    """For people and for programs."""
    run = shelved(runs)
    last = damage(runs) - 1
    refold("audit", run).ends(
        5,
        out=[
            f"damaged   {last}      lines 0 to {last} are good and stand here",
            "attempt 1: reads, in flight, or its process died in it",
        ],
        err="is damaged in seg-000001.jsonl",
    )
    said = refold("audit", run, "--json")
    assert (said.status, said.json["seq"]) == (5, last)
    assert "is damaged in" in said.json["damaged"]


def test_a_log_without_a_good_line_is_told_as_that(refold: Refold, runs: Path) -> None:
    """There is no story to tell, and no traceback."""
    run = shelved(runs)
    file = runs / run / "seg-000001.jsonl"
    file.write_bytes(b"x" + file.read_bytes()[1:])
    said = refold("audit", run).ends(5)
    assert said.out.startswith("run  r\n\nFindings\n")
    assert refold("audit", run, "--json").status == 5


def test_the_story_moves_no_terminal(refold: Refold, runs: Path) -> None:
    """What a tool returned may hold anything, and is shown by its numbers."""
    run = shelved(runs, text=LOUD)
    said = refold("audit", run)
    assert not OBEYED.search(said.out)
    assert "\\x1b[31mred" in said.out
    assert "\\u202eturned" in said.out


def test_the_story_fits_the_width_of_a_terminal(refold: Refold, runs: Path, tmp_path: Path) -> None:
    """A payload is cut there, a sentence folded below itself, and nothing but our own bold headings is a control."""
    run = shelved(runs, text=LOUD * 40)
    with Terminal("audit", run, "--runs", runs, cwd=tmp_path, columns=60, env=SILENT) as terminal:
        assert terminal.end() == 0
    plain = re.sub(r"\x1b\[[0-9;]*m", "", terminal.seen).replace("\r\n", "\n")
    assert not OBEYED.search(plain)
    assert max(map(cell_len, plain.split("\n"))) <= 60
    assert re.search(r"\n    says .*(\n {6}.*)?\.\.\.\n", plain)
    assert re.search(r"\n {6}attempt 1: .*\n {8}[0-9a-f]{32}  \(line \d+\)\n", plain)
    piped = refold("audit", run).out
    assert re.search(r"\n {6}attempt 1: .* key [0-9a-f]{32}  \(line \d+\)\n", piped)


def test_a_run_is_shown_as_it_stood_after_any_of_its_lines(refold: Refold, runs: Path) -> None:
    """The fold of the lines up to there, and nothing of what came later."""
    run = stories.shelf(stories.eventful(), runs, disk=Quick())
    lines = eventlog.store(runs).read(run).lines
    for seq in (0, 1, 9, 21, len(lines) - 1):
        state, shown = replay.load(lines[: seq + 1]), refold("show", run, "--at", seq, "--json").json
        assert (shown["seq"], shown["phase"], shown["turns"]) == (seq, state.phase, state.turns)
        assert shown["in_doubt"] == list(state.in_doubt)
    page = refold("show", run, "--at", 21).out
    assert "4.0-settle-1: did patch happen?" in page
    assert "refold settle" not in page  # nobody can answer the past
    assert "in doubt: it may have happened" in refold("show", run, "--at", 9).out


def test_a_line_that_is_not_there_is_a_usage_error_that_names_the_last(refold: Refold, runs: Path) -> None:
    """As is asking for one line and for all of them."""
    run = shelved(runs)
    last = len(eventlog.store(runs).read(run).lines) - 1
    refold("show", run, "--at", last + 1).ends(2, err=f"run r has no line {last + 1}; its last is {last}")
    assert refold("show", run, "--at", 1, "--follow").status == 2
    assert refold("show", run, "--at", -1).status == 2


def test_a_damaged_run_is_shown_as_it_stood_before_its_damage(refold: Refold, runs: Path) -> None:
    """Behind it, only the damage can be said."""
    run = shelved(runs)
    bad = damage(runs)
    assert refold("show", run, "--at", bad - 1, "--json").json["seq"] == bad - 1
    refold("show", run, "--at", bad).ends(5, err="is damaged in seg-000001.jsonl")


@pytest.mark.full
def test_ten_thousand_events_are_audited_in_little_time(
    runs: Path, record_property: Callable[[str, object], None]
) -> None:
    """The goal is one second; a machine under load gets five."""
    run = stories.shelf(stories.long(10_000, "x" * 1500), runs, disk=Quick())
    began = time.perf_counter()
    audited = runner.review.audit(run, runs)
    took = time.perf_counter() - began
    events = sum(len(line.events) for line in audited.lines)
    record_property(FIGURES, f"{events:,} events in {took:.2f} s")
    assert events >= 10_000
    assert took < 5
