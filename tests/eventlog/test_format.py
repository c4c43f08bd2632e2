"""The package's docstring is the format: a reader written from it alone agrees with ours on every kind of log."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import eventlog
from tests.eventlog import docreader
from tests.eventlog.making import AT, OPENING, event, goes_on, head, lines_of, made, rolled, segment
from tests.support import sample_logs
from tests.support.sample_logs import broken


def ours(runs: Path) -> tuple[str, int]:
    """Give the same answer from `Store.scan`."""
    reading = eventlog.store(runs).scan("r")
    return "damaged" if reading.damage else "torn" if reading.torn else "whole", len(reading.lines)


def test_the_reader_is_short() -> None:
    """A format that takes more than a page to read would not be read by others."""
    text = Path(docreader.__file__).read_text(encoding="utf-8")
    assert len([line for line in text.splitlines() if line.strip()]) <= 60
    assert "eventlog" not in text


@pytest.mark.parametrize("end", ["close", "abandon"])
@pytest.mark.parametrize("with_head", [True, False])
def test_a_reader_written_from_the_docstring_agrees_on_broken_logs(tmp_path: Path, end: str, with_head: bool) -> None:
    """Cut anywhere, a byte changed anywhere, a hole anywhere: both readers say the same, with and without a head."""
    path = made(tmp_path, saves=2, size=40, end=end)
    if not with_head:
        head(tmp_path).unlink()
    whole = path.read_bytes()
    used = len(b"".join(lines_of(path)))
    verdicts = {ours(tmp_path)}
    for place in range(0, used, 13):
        broke = [whole[:place], whole[:place] + bytes(900), whole[:place] + b"\n" + whole[place + 1 :]]
        broke += [whole[:place] + bytes(70) + whole[place + 70 :], whole[:place] + b"#" + whole[place + 1 :]]
        for data in broke:
            path.write_bytes(data)
            assert docreader.judged(tmp_path / "r") == ours(tmp_path), (place, data[place - 9 : place + 9])
            verdicts.add(ours(tmp_path))
    assert {verdict for verdict, _ in verdicts} == ({"whole", "damaged"} if with_head else {"whole", "torn", "damaged"})


def test_it_agrees_on_good_logs_of_every_kind(tmp_path: Path) -> None:
    """Several segments, lives, a header alone, a live log, snapshots: the docstring leaves none of them out."""
    for kind in sample_logs.KINDS:
        runs = sample_logs.lay(tmp_path / kind / "r", sample_logs.log(kind))
        assert docreader.judged(runs / "r") == ours(runs)
        assert ours(runs)[0] == "whole"
    rolled(tmp_path / "a")
    eventlog.store(tmp_path / "b").create("r", at=AT, events=[]).close()
    live = eventlog.store(tmp_path / "c").create("r", at=AT, events=[OPENING, event(1, 3000)])
    made(tmp_path / "d")
    goes_on(tmp_path / "d")
    assert [docreader.judged(tmp_path / name / "r") for name in "abcd"] == [ours(tmp_path / name) for name in "abcd"]
    assert [count for _, count in map(ours, (tmp_path / name for name in "abcd"))] == [9, 1, 2, 6]
    segment(tmp_path / "a", number=2).unlink()
    assert docreader.judged(tmp_path / "a" / "r") == ours(tmp_path / "a") == ("damaged", 3)
    live.close()


def test_it_agrees_on_logs_of_every_kind_broken_at_random(tmp_path: Path) -> None:
    """In every file, up to three times: torn tails, heads of another time, snapshots of another log."""
    rng = random.Random(7)  # noqa: S311 - it picks examples; it protects nothing
    verdicts = set()
    for number in range(300):
        content = broken(sample_logs.log(sample_logs.KINDS[number % len(sample_logs.KINDS)]), rng)
        runs = sample_logs.lay(tmp_path / "r", content)
        try:
            said = ours(runs)
        except eventlog.NoSuchRun:
            continue
        assert docreader.judged(runs / "r") == said, number
        verdicts.add(said)
    assert len(verdicts) > 15
