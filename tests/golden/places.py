"""What only a disk can show: torn tails, segments and snapshots, forks, a salvaged log, events of a later version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

import eventlog
import replay
from replay.events import ResultRecorded, RunForked, RunStarted, RunStopped
from replay.messages import AssistantMessage, Reply, UserMessage
from tests.golden import rungs, shapes
from tests.golden.telling import Fixed, Telling, kept, written
from tests.support.file_logs import roll
from tests.support.story import BEGIN

Place = Callable[[Path, Fixed], list[Telling]]


def continued(runs: Path, disk: Fixed) -> list[Telling]:
    """A run that continues the conversation of a finished one."""
    t = Telling("continued")
    (started,) = t.written.pop()[1]
    assert isinstance(started, RunStarted)
    t.lines.clear()
    t.state = replay.NEW
    said = (UserMessage("before"), AssistantMessage(Reply(text="It was so.")))
    t.write(replace(started, after="finished", history=said))
    t.over()
    kept(t, runs, disk).close()
    return [t]


def torn(runs: Path, disk: Fixed) -> list[Telling]:
    """A save that never finished stands at the end; in a second run another life has cut it, and kept the bytes."""
    uncut, cut = (_torn(name, runs, disk) for name in ("torn", "torn-cut"))
    cut.resume()
    _more(cut, runs, disk).close()
    return [uncut, cut]


def _torn(name: str, runs: Path, disk: Fixed) -> Telling:
    t = Telling(name)
    t.call("ring")
    kept(t, runs, disk).abandon()
    path = runs / name / "seg-000001.jsonl"
    whole = path.read_bytes().rstrip(b"\0")
    path.write_bytes(whole + whole.splitlines(keepends=True)[-1][:-40])
    return t


def segments(runs: Path, disk: Fixed) -> list[Telling]:
    """Three segments, with a snapshot behind the second."""
    t = Telling("segments")
    t.call("look")
    t.ran("saw")
    log = kept(t, runs, disk)
    roll(log)
    done = len(t.lines)
    t.call("ring")
    for line in t.lines[done:]:
        log.append(line.at, [bytes(event) for event in line.events])
    done = len(t.lines)
    t.ran("rang", call="2.0")
    for line in t.lines[done:]:
        log.append(line.at, [bytes(event) for event in line.events])
    state = replay.load(eventlog.store(runs).read(t.name).lines)
    log.compact(replay.dump(state), replay.FOLD_VERSION)
    done = len(t.lines)
    t.over()
    for line in t.lines[done:]:
        log.append(line.at, [bytes(event) for event in line.events])
    log.close()
    return [t]


def forked(runs: Path, disk: Fixed) -> list[Telling]:
    """A run that was stopped by its fork; the fork makes the same payment again, and a person takes the parent's."""
    parent = Telling("fork-parent")
    parent.call("look")
    parent.ran("saw")
    at = len(parent.lines)
    parent.call("pay", note="x")
    parent.ran("paid", call="2.0")
    parent.call("ring")
    parent.ended("unknown", call="3.0")
    log = kept(parent, runs, disk)
    fork = _forked(parent, "fork", at, runs, disk)
    parent.stop("Forked", detail=f"fork goes on from its line {at}, by ann")
    log.append(parent.lines[-1].at, [bytes(event) for event in parent.lines[-1].events])
    log.close()
    fork.resume()
    fork.call("pay", note="y")
    fork.say("2.0-settle-1", "done")
    fork.resume()
    fork.call("pay", note="z")
    fork.call("ring")
    fork.say(f"{fork.state.turns}.0-settle-1", "rerun")
    fork.resume()
    fork.ran("rang", call=f"{fork.state.turns}.0")
    fork.over()
    _more(fork, runs, disk).close()
    return [parent, fork]


def forked_open(runs: Path, disk: Fixed) -> list[Telling]:
    """A fork at a line where a call was open: its ladder settles it with the parent's key."""
    parent = Telling("fork-open-parent")
    rungs.missing(parent)
    kept(parent, runs, disk).close()
    at = next(line.seq for line in parent.lines if b"run_resumed" in b"".join(map(bytes, line.events))) + 1
    fork = _forked(parent, "fork-open", at, runs, disk)
    fork.resume()
    fork.go(ResultRecorded(call="1.0", how="found", text="patched"))
    fork.over()
    _more(fork, runs, disk).close()
    return [parent, fork]


def _forked(parent: Telling, name: str, at: int, runs: Path, disk: Fixed) -> Telling:
    """The fork of a history at its line `at`, as a history to go on with."""
    lines = eventlog.store(runs).read(parent.name).lines
    made = replay.fork(lines, at, run=name, at=parent.now, host="h", pid=9)
    opening = [replay.encode(made.event)]
    shared = [line for line in lines if line.seq <= at]
    eventlog.Directory(runs, disk=disk).fork(shared, name, keep=made.keep, at=parent.now, events=opening).close()
    fork = Telling(name)
    fork.lines, fork.written = [], []
    fork.agents = [*parent.agents[: made.state.life - 1], "shop"]
    fork.now, fork.life, fork.state = parent.now, made.state.life, made.state
    return fork


def salvaged(runs: Path, disk: Fixed) -> list[Telling]:
    """What was good of a damaged run, stopped for good; the damaged one beside it."""
    t = Telling("damaged")
    shapes.repeated(t)
    kept(t, runs, disk).close()
    path = runs / "damaged" / "seg-000001.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"text":"paid"', b'"text":"pair"', 1))
    copy = Telling("salvaged")
    state = replay.NEW

    def follows(line: eventlog.Line) -> bool:
        nonlocal state
        try:
            state = replay.load([line], state)
        except replay.ReplayError:
            return False
        return True

    with eventlog.Directory(runs, disk=disk).salvage("damaged", "salvaged", follows=follows) as log:
        forked = RunForked(run="salvaged", parent="damaged", seq=state.seq, host="h", pid=9)
        over = RunStopped(reason="StoppedByPerson", final=True, detail="salvaged by ann")
        log.append(t.now, [replay.encode(forked), replay.encode(over)])
    copy.agents = ["shop", "shop"]
    return [copy]


def later(runs: Path, disk: Fixed) -> list[Telling]:
    """Events of a later version: one that may be passed over, and one that may not."""
    left = []
    for name, event in (
        ("later-ignorable", b'{"type":"weather_noted","ignorable":true,"sky":"blue"}'),
        ("later", b'{"type":"weather_made","sky":"blue"}'),
    ):
        t = Telling(name)
        t.call("look")
        log = kept(t, runs, disk)
        log.append(BEGIN, [event])
        log.close()
        left.append(t)
    return left


def _more(t: Telling, runs: Path, disk: Fixed) -> eventlog.Log:
    """The lines that a history has got since it was written, behind those that are on disk."""
    log = eventlog.Directory(runs, disk=disk).open(t.name)
    return written(t.lines[-_new(t, log) :], log, runs, disk)


def _new(t: Telling, log: eventlog.Log) -> int:
    return sum(1 for line in t.lines if line.life >= log.life)


PLACES: tuple[Place, ...] = (continued, torn, segments, forked, forked_open, salvaged, later)
"""Each makes its histories in a directory of runs."""
