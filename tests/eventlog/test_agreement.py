"""Both readers agree on every byte string: they say the same of a log, whatever it holds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import eventlog
from eventlog import _frame, simdisk
from tests.eventlog import mutations
from tests.eventlog.test_second import seen
from tests.support import sample_logs
from tests.support.figures import FIGURES

RUNS = Path("/runs")


def store(content: dict[str, bytes]) -> eventlog.Store:
    """Put the files of a run on a disk in memory."""
    process = simdisk.Process(simdisk.Machine())
    for directory in (RUNS, RUNS / "r"):
        process.mkdir(directory)
    for name, data in content.items():
        process.pwrite(process.open(RUNS / "r" / name, write=True, create=True), data, 0)
    return eventlog.Directory(RUNS, disk=process)


def said(runs: eventlog.Store, reader: str) -> object:
    """What a reader sees, or which error it raises."""
    try:
        return seen(getattr(runs, reader)("r"))
    except eventlog.LogError as error:
        return type(error).__name__


@pytest.mark.fault("readers that disagree")
@pytest.mark.parametrize("rounds", [1_500, pytest.param(50_000, marks=pytest.mark.full)])
def test_both_readers_say_the_same_of_every_mutation(
    rounds: int, record_property: Callable[[str, object], None]
) -> None:
    """A log that one calls whole and the other damaged is carried on by one and given up by the other."""
    rng = random.Random(rounds)  # noqa: S311 (it picks examples; it protects nothing)
    logs, came = mutations.logs(), Counter[str]()
    for number in range(rounds):
        content = mutations.mutated(logs[number % len(logs)], rng)
        runs = store(content)
        first = said(runs, "scan")
        assert said(runs, "verify") == first, (number, content)
        came[first if isinstance(first, str) else "damaged" if first[-1] else "read"] += 1  # type: ignore[index] # a tuple
    assert min(came["damaged"], came["read"]) > rounds / 10, came
    record_property(FIGURES, f"{rounds} mutations read twice: {dict(came)}")


@pytest.mark.fault("readers that disagree")
def test_both_readers_say_the_same_of_every_header() -> None:
    """The header is the one place whose content the format fixes: each of its values is another, each field missing."""
    parent = b'{"run":"q","seq":1,"sum":"0"}'
    salvaged = b'{"run":"q","lines":1,"gaps":[{"after":1,"before":null,"why":""}]}'
    text = sample_logs.log("header alone")["seg-000001.jsonl"].rpartition(b',"sum":')[0]
    text = text.replace(b'"parent":null', b'"parent":' + parent).replace(b'"salvaged":null', b'"salvaged":' + salvaged)
    texts = [text, text.replace(b'"parent":', b'"extra":[1],"parent":'), text.replace(b'"run":"r"', b'"run":"s"')]
    for value in mutations.VALUE.finditer(text):
        texts += [text[: value.start()] + token + text[value.end() :] for token in (*mutations.TOKENS, b'"1"')]
    for pair in mutations.PAIR.finditer(text):
        texts += [text[: pair.start()] + text[pair.end() + 1 :], text[: pair.start() - 1] + text[pair.end() :]]
    came = Counter[str]()
    for changed in texts:
        runs = store({"seg-000001.jsonl": mutations.sealed(changed, b"sum")})
        first = said(runs, "scan")
        assert said(runs, "verify") == first, changed
        came[first if isinstance(first, str) else "damaged" if first[-1] else "read"] += 1  # type: ignore[index] # a tuple
    assert min(came["damaged"], came["read"], came["OtherFormat"]) > 2, came


@pytest.mark.fault("readers that disagree")
def test_a_mutation_makes_the_chain_after_it_anew() -> None:
    """Or every change of a line would be damage of the chain, and nothing else of it would be looked at."""
    content = {name: data for name, data in sample_logs.log("rolled").items() if name != "head"}
    first = content["seg-000001.jsonl"].splitlines(keepends=True)[1]
    old = _frame.parse(first).sum.encode()
    changed = mutations.sealed(first.replace(b"opened", b"shut", 1).rpartition(b',"sum":')[0], b"sum")
    content["seg-000001.jsonl"] = content["seg-000001.jsonl"].replace(first, changed)
    mutations.link(content, old, _frame.parse(changed).sum.encode())
    assert store(content).scan("r").damage is None


@pytest.mark.fault("readers that disagree")
@pytest.mark.parametrize("end", [b"x", bytes(600) + b"x"])
def test_of_a_log_that_its_snapshot_proves_damaged_neither_reader_calls_the_end_torn(end: bytes) -> None:
    """Torn is what may be cut off; of a damaged log nothing is."""
    content = {name: data for name, data in sample_logs.log("compacted").items() if name != "head"}
    snapshots = sorted(name for name in content if name.startswith("snap-"))
    last = max(name for name in content if name.startswith("seg-"))
    content["snap-99.json"] = mutations.sealed(
        content[snapshots[-1]].rpartition(b',"check":')[0].replace(snapshots[-1][5:-5].encode(), b"99", 1), b"check"
    )
    content[last] = content[last].rstrip(b"\0") + end
    runs = store(content)
    assert runs.scan("r").damage is not None
    assert runs.scan("r").torn is None
    assert said(runs, "verify") == said(runs, "scan")
