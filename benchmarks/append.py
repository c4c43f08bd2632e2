"""What does a save cost, as the history grows: append an event, or rewrite a snapshot of everything?

Every arm saves the same events. With 1,000 and 10,000 saves the snapshot arms are timed at evenly spread saves, since
their cost grows along a straight line; refold's arm does them all. Bytes and flushes are counted under strace in a run
of their own for 142 saves; for more, bytes are those of the very same writes, summed without writing them.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import msgspec

from benchmarks import arms, history, table, writers
from benchmarks.arms import Arm, Timed, us

OWN = "refold"
SIZES = {142: 142, 1_000: 100, 10_000: 60}
"""Saves, and how many of them the snapshot arms are timed at."""
QUICK = {142: 142, 1_000: 25}


def made(count: int) -> dict[str, Arm]:
    """The arms, over one history."""
    events = list(history.saves(count))
    own = functools.partial(writers.append, events)
    found: dict[str, Arm] = {OWN: own, OWN + arms.AGAIN: own}
    for name, serialise in writers.SERIALISERS.items():
        found[name] = functools.partial(writers.snapshot, serialise, events)
    return found


def sampled(count: int, timed: int) -> list[int]:
    """Which saves are timed: evenly spread, the last one included."""
    return [(n + 1) * count // timed - 1 for n in range(timed)]


def snapshot_bytes(count: int, name: str) -> int:
    """Bytes that a snapshot at each save hands to write."""
    serialise = writers.SERIALISERS[name]
    sizes = [
        sum(len(serialise(msgspec.to_builtins(event))) + 1 for event in line)
        for line in [history.opening(), *history.saves(count)]
    ]
    total = whole = 0
    for number, size in enumerate(sizes):
        whole += size
        total += whole + 1 if number else 0
    return total


def row(name: str, timed: Timed, own: Timed, calls: arms.Calls | None, count: int) -> list[str]:
    """One arm's figures."""
    written = f"{calls.written:,}" if calls else "-"
    return [
        name,
        us(arms.middle(timed.p50)),
        us(arms.middle(timed.p99)),
        us(arms.middle(timed.first)),
        us(arms.middle(timed.last)),
        "" if timed is own else f"{arms.ratio(timed.p50, own.p50):.2f}",
        f"{calls.flushes / count:.2f}" if calls else "-",
        written,
    ]


HEAD = ["arm", "p50 µs", "p99 µs", "first tenth", "last tenth", "times refold", "flushes a save", "bytes written"]


def compared(count: int, timed: int, *, pause: float, short: bool) -> None:
    """Time one size, and tell it."""
    found = made(count)
    saves = {name: range(count) if name.startswith(OWN) else sampled(count, timed) for name in found}
    figures = arms.rounds(found, saves, 5 if short else arms.ROUNDS, pause=pause)
    own = figures[OWN]
    calls = {name: arms.traced("benchmarks.append", name, str(count)) for name in ([*found] if count < 500 else [OWN])}
    rows = [row(name, figures[name], own, calls.get(name), count) for name in found]
    mine = calls[OWN]
    notes = [f"p50 of refold's last tenth against its first: {arms.ratio(own.last, own.first):.2f}"]
    if mine is not None:
        payload = mine.written - zeros(mine.written, count)
        for name, cells in zip(list(found)[2:], rows[2:], strict=True):
            total = snapshot_bytes(count, name)
            cells[-1] = f"{total:,}"
            notes.append(
                f"{name}: {total / payload:,.0f} times the bytes of refold's lines and heads, "
                f"{total / mine.written:,.0f} times with the zeros that are laid ahead"
            )
    if timed < count:
        notes.append(f"the snapshot arms are timed at {timed} saves, evenly spread over the {count:,}")
    kind = "paced" if pause else "tight"
    plot = {
        "x": list(found),
        "series": {"p50": [arms.middle(figures[name].p50) * 1e6 for name in found]},
        "ylabel": "µs a save (p50)",
        "log": True,
    }
    pace = f", {pause * 1000:g} ms of thinking between two" if pause else ""
    question = f"What does a save cost, {count:,} saves of 1.5 KB{pace}?"
    table.report(f"append-{count}-{kind}", question, HEAD, rows, notes=notes, plot=plot, short=short)


def zeros(written: int, count: int) -> int:
    """How many of the bytes handed to write were zeros laid ahead: whatever is neither a line nor a head."""
    events = history.encoded(count)
    frame = 178  # what a line holds around its events, newline included
    lines = sum(frame + len(str(n)) + sum(map(len, line)) + len(line) - 1 for n, line in enumerate(events, start=2))
    return max(written - lines - 256 * count, 0)


def counted(name: str, count: int, path: Path) -> None:
    """Do one arm's saves between marks, for strace."""
    with made(count)[name](path) as save, arms.marked():
        for number in range(count):
            save(number)


def main() -> None:
    """Answer, for every size."""
    short = table.quick(__doc__)
    for count, timed in (QUICK if short else SIZES).items():
        compared(count, timed, pause=0, short=short)
    compared(40 if short else 142, 40 if short else 142, pause=0.02 if not short else 0.002, short=short)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        counted(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
    else:
        main()
