"""The package's docstring is the format: a reader written from it alone agrees with ours on every kind of log."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

import eventlog
from tests.eventlog.making import AT, OPENING, event, goes_on, head, lines_of, made, rolled, segment

LINE = re.compile(
    rb'\{"seq":(\d+),"life":\d+,"at":"[^"]{26}Z","prev":"([0-9a-f]{32})","(?:events":\[|header":\{).*,"sum":"(.{32})"\}\n',
    re.DOTALL,
)
HEAD = re.compile(
    rb'\{"state":"(open|closed)","segment":(\d+),"seq":(-?\d+),"offset":(\d+),"sum":"(.{32})","check":"(.{32})"\} *\n'
)


def total(data: bytes) -> bytes:
    """Make a sum as the docstring says."""
    return hashlib.sha256(data).hexdigest()[:32].encode()


def good(data: bytes) -> re.Match[bytes] | None:
    """Tell whether bytes are a line by themselves."""
    match = LINE.fullmatch(data)
    if match is None or b"\0" in data or match[3] != total(data[: data.rindex(b',"sum":')]):
        return None
    json.loads(data)
    return match


def judged(run: Path) -> tuple[str, int]:
    """Read a run's directory; say `whole`, `torn` or `damaged`, and how many good lines there are."""
    witness = HEAD.fullmatch(head(run.parent, run.name).read_bytes()) if head(run.parent, run.name).exists() else None
    if witness and witness[6] != total(witness[0][: witness[0].index(b',"check":')]):
        witness = None
    names = sorted(path.name for path in run.iterdir() if re.fullmatch(r"seg-\d{6}\.jsonl", path.name))
    sums: list[bytes] = []
    rest = b""
    for number, name in enumerate(names, start=1):
        data, at, begun = (run / name).read_bytes(), 0, len(sums)
        while (stop := data.find(b"\n", at) + 1) and (match := good(data[at:stop])):
            if int(match[1]) != len(sums) or match[2] != (sums[-1] if sums else b"0" * 32):
                break
            at, sums = stop, [*sums, match[3]]
        rest = data[at:].rstrip(b"\0")
        if name != f"seg-{number:06d}.jsonl" or len(sums) == begun or (number < len(names) and len(data) > at):
            return "damaged", len(sums)
    if witness and (seq := int(witness[3])) >= 0:
        if seq >= len(sums) or sums[seq] != witness[5]:
            return "damaged", len(sums)
        if witness[1] == b"closed" and (seq != len(sums) - 1 or rest):
            return "damaged", len(sums)
    first, newline, behind = rest.partition(b"\n")
    pieces = [piece + b"\n" for piece in behind.split(b"\n")]
    hole = b"\0" in first and good(first[first.rindex(b"\0") + 1 :] + newline)
    later = any(good(piece[piece.rfind(b"\0") + 1 :]) or piece.startswith(b'{"seq":') for piece in pieces[:-1])
    unfinished = (b"\0" in first or not newline) and not hole and not later
    return ("whole" if not rest else "torn" if unfinished else "damaged"), len(sums)


def ours(runs: Path) -> tuple[str, int]:
    """Give the same answer from `eventlog.scan`."""
    reading = eventlog.scan(runs, "r")
    return "damaged" if reading.damage else "torn" if reading.torn else "whole", len(reading.lines)


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
        broken = [whole[:place], whole[:place] + bytes(900), whole[:place] + b"\n" + whole[place + 1 :]]
        broken += [whole[:place] + bytes(70) + whole[place + 70 :], whole[:place] + b"#" + whole[place + 1 :]]
        for data in broken:
            path.write_bytes(data)
            assert judged(tmp_path / "r") == ours(tmp_path), (place, data[place - 9 : place + 9])
            verdicts.add(ours(tmp_path))
    assert {verdict for verdict, _ in verdicts} == ({"whole", "damaged"} if with_head else {"whole", "torn", "damaged"})


def test_it_agrees_on_good_logs_of_every_kind(tmp_path: Path) -> None:
    """Several segments, lives, a header alone, a live log: the docstring leaves none of them out."""
    rolled(tmp_path / "a")
    eventlog.create(tmp_path / "b", "r", at=AT, events=[]).close()
    live = eventlog.create(tmp_path / "c", "r", at=AT, events=[OPENING, event(1, 3000)])
    made(tmp_path / "d")
    goes_on(tmp_path / "d")
    assert [judged(tmp_path / name / "r") for name in "abcd"] == [ours(tmp_path / name) for name in "abcd"]
    assert [count for _, count in map(ours, (tmp_path / name for name in "abcd"))] == [9, 1, 2, 6]
    segment(tmp_path / "a", number=2).unlink()
    assert judged(tmp_path / "a" / "r") == ours(tmp_path / "a") == ("damaged", 3)
    live.close()
