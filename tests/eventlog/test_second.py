"""Two readers of one format: `verify` reads with code of its own, and must see what `scan` sees on every log."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import msgspec
import pytest

import eventlog
from eventlog import _frame, _head
from tests.support import ROOT, sample_logs

CONSTANTS = {"FORMAT", "MAX_LINE", "NO_SUM", "MAX_SIZE", "HEAD"}
NAMES = {"is_ours", "segment_name", "segment_number", "snapshot_name", "snapshot_seq"}
FOREIGN = {"Files", "NotAFile", "Torn", "LogDamaged"}


def seen(found: eventlog.Reading | eventlog.Verdict) -> tuple[object, ...]:
    """Give what a reader says: the facts, without the words it finds for them."""
    at = found.damage
    damage = at and (at.file, at.offset, at.expected_seq, at.good_after)
    torn = (found.torn.file, found.torn.offset, found.torn.size) if found.torn else None
    if isinstance(found, eventlog.Verdict):
        segments = [(part.file, part.lines, part.bytes, part.size, part.zeros) for part in found.segments]
        last = (found.seq, found.sum, found.lives) if found.seq >= 0 else None
        return last, found.head, segments, found.storage, torn, damage
    head = "missing" if found.head is None else "closed" if found.head.closed else "open"
    segments = [(part.file, len(part.lines), part.end, part.size, part.size - part.rest) for part in found.segments]
    line = found.lines[-1] if found.lines else None
    return line and (line.seq, line.sum, line.life), head, segments, found.storage, torn, damage


def seen_by_scan(runs: Path) -> tuple[object, ...]:
    """Give what the first reader says."""
    return seen(eventlog.store(runs).scan("r"))


def seen_by_verify(runs: Path) -> tuple[object, ...]:
    """Give what the second reader says."""
    return seen(eventlog.store(runs).verify("r"))


def test_the_second_reader_shares_only_constants_with_the_first() -> None:
    """Shared code would make both wrong in the same way: then their agreement says nothing."""
    shared = set()
    for name in ("_independent_reader", "_verify_scan"):
        tree = ast.parse((ROOT / "eventlog" / f"{name}.py").read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("eventlog"):
                shared |= {alias.name for alias in node.names if node.module != "eventlog._independent_reader"}
            if isinstance(node, ast.Import):
                assert not {alias.name for alias in node.names} & {"msgspec", "eventlog"}
    assert shared == CONSTANTS | NAMES | FOREIGN | {"_independent_reader"}


@pytest.mark.parametrize("kind", sample_logs.KINDS)
def test_they_agree_on_good_logs(tmp_path: Path, kind: str) -> None:
    """And find them good."""
    runs = sample_logs.lay(tmp_path / "r", sample_logs.log(kind))
    assert seen_by_verify(runs) == seen_by_scan(runs)
    assert eventlog.store(runs).verify("r").ok


def test_they_agree_on_broken_logs(tmp_path: Path) -> None:
    """On whether it is damaged or torn, in which file, at which byte, before how many good lines."""
    rng = random.Random(4)  # noqa: S311 - it picks examples; it protects nothing
    kinds = set()
    for number in range(500):
        kind = sample_logs.KINDS[number % len(sample_logs.KINDS)]
        content = sample_logs.broken(sample_logs.log(kind), rng)
        runs = sample_logs.lay(tmp_path / "r", content)
        try:
            first = seen_by_scan(runs)
        except eventlog.NoSuchRun:
            continue
        assert seen_by_verify(runs) == first, (number, kind)
        kinds.add((kind, "damaged" if first[-1] else "torn" if first[-2] else "whole"))
    assert len(kinds) >= 2 * len(sample_logs.KINDS)


CRAFTED = [
    b'"events":[{"a":1}] ',
    b'"events":[{"a":1}\r]',
    b'"events":[ {"a":1}]',
    b'"events":[{"a":01}]',
    b'"events":[{"a":NaN}]',
    b'"events":[{"a":"\\ud800"}]',
    b'"events":[{"a":"\\ud83d\\ude00"}]',
    b'"events":[{"a":"\\\\ud800"}]',
    b'"events":[{"a":1e999}]',
    b'"events":[{"a":' + b"7" * 5000 + b"}]",
    *(b'"events":[' + b'{"a":' * deep + b"1" + b"}" * deep + b"]" for deep in (128, 129, 985, 988, 990, 1500)),
    *(b'"events":[{"a":' + b"[" * deep + b"]" * deep + b"}]" for deep in (127, 128, 987)),
    b'"events":[{"a":"' + b"[" * 500 + b'\\"[{"},{"a":[' + b"[]," * 500 + b"[]]}]",
    b'"events":[{"a":"\x01"}]',
    b'"events":[{"a":"\xff"}]',
    b'"events":[{"a":"\xe2\x80\xa8"}]',
    b'"events":[7]',
    b'"events":[]',
    b'"events":[{}],"more":1',
    b'"events":{}',
    b'"event":[]',
]


def test_they_agree_on_lines_with_a_right_sum_that_no_writer_of_ours_makes(tmp_path: Path) -> None:
    """A foreign writer can make a right sum over anything: what counts as a line must not depend on who reads."""
    content = sample_logs.log("short")
    last = eventlog.store(sample_logs.lay(tmp_path / "r", content)).read("r").lines[-1]
    good = b'{"seq":%d,"life":1,"at":"2026-11-29T15:14:58.123456Z","prev":"%b",' % (last.seq + 1, last.sum.encode())
    heads = [(good, body) for body in CRAFTED]
    for old, new in [
        (b'"seq":%d' % (last.seq + 1), b'"seq":0%d' % (last.seq + 1)),
        (b'"seq":', b'"seq": '),
        (b'"seq":%d' % (last.seq + 1), b'"seq":1e400'),
        (b'"seq":%d' % (last.seq + 1), b'"seq":true'),
        (b'"seq":%d' % (last.seq + 1), b'"seq":"5"'),
        (b'"seq":%d' % (last.seq + 1), b'"seq":1180591620717411303424'),
        (b'"life":1', b'"life":3'),
        (b'"life":1', b'"life":2'),
        (b'"life":1', b'"life":0'),
        (b"-11-", b"-13-"),
        (b"2026", b"0000"),
        (b".123456Z", b".123Z"),
        (b".123456Z", b".12345\xd9\xa1Z"),
        (b"123456Z", b"123456z"),
        (b'"prev"', b'"PREV"'),
        (b'"life":1', b'"life":1,"life":1'),
    ]:
        heads.append((good.replace(old, new), b'"events":[{}]'))
    verdicts = []
    for head, body in heads:
        text = head + body
        line = text + b',"sum":"%b"}\n' % _frame.digest(text).encode()
        runs = sample_logs.lay(tmp_path / "r", {"seg-000001.jsonl": content["seg-000001.jsonl"] + line})
        assert seen_by_verify(runs) == seen_by_scan(runs), line
        verdicts.append(eventlog.store(runs).verify("r").ok)
    assert 5 < sum(verdicts) < len(verdicts) - 5


@pytest.mark.parametrize(
    "after",
    [
        b'\0\0x\n{"seq":9,bad\n',
        b'\0\0x\n\0{"seq":9,bad\n',
        b"\0\0x\nbad\n",
        b'\0\0x\n{"seq":9,bad',
        b'{"seq":9,bad\n{"seq":9,bad\n',
        b'{"seq":9\n\0\0',
    ],
)
def test_they_agree_on_what_lies_behind_the_last_line(tmp_path: Path, after: bytes) -> None:
    """A hole makes it torn, a whole line after the hole makes it damage again: a writer never leaves that."""
    runs = sample_logs.lay(tmp_path / "r", {"seg-000001.jsonl": sample_logs.log("short")["seg-000001.jsonl"] + after})
    assert seen_by_verify(runs) == seen_by_scan(runs)


@pytest.mark.parametrize("changes", [{}, {"offset": 7}, {"segment": 2}, {"seq": 1}, {"sum": "0" * 32}, {"seq": 99}])
@pytest.mark.parametrize("closed", [True, False])
def test_they_agree_on_heads_that_contradict_the_log(tmp_path: Path, changes: dict[str, object], closed: bool) -> None:
    """Such a head has a right check: whoever made it was no disk."""
    content = sample_logs.log("rolled")
    runs = sample_logs.lay(tmp_path / "r", content)
    was = eventlog.store(runs).scan("r").head
    assert was is not None
    told = msgspec.structs.replace(was, closed=closed, **changes)
    runs = sample_logs.lay(tmp_path / "r", {**content, "head": _head.encode(told)})
    assert seen_by_verify(runs) == seen_by_scan(runs)
    assert eventlog.store(runs).verify("r").ok is not bool(changes)


def test_a_newer_format_is_newer_to_both(tmp_path: Path) -> None:
    """It is not damage, and neither guesses."""
    text = sample_logs.log("header alone")["seg-000001.jsonl"].replace(b'"format":2', b'"format":3')[:-43]
    whole = text + b',"sum":"%b"}\n' % _frame.digest(text).encode()
    runs = sample_logs.lay(tmp_path / "r", {"seg-000001.jsonl": whole})
    for look in ("scan", "verify"):
        with pytest.raises(eventlog.OtherFormat) as caught:
            getattr(eventlog.store(runs), look)("r")
        assert caught.value.format == 3
