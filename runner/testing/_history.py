"""What a store holds of a run and its children, and what a power cut may leave of a simulated machine's disk."""

import random
from pathlib import Path
from typing import Final

from msgspec.structs import replace

import eventlog
import replay
from eventlog.simdisk import Image, Machine, cuts
from replay.events import ChildStarted, QuestionAnswered, QuestionAsked, ReplySaved

RUN: Final = "swept"
RUNS: Final = Path("/runs")
IMAGES: Final = 8
"""The most images of one power cut."""


Family = dict[str, tuple[str, list[replay.AnyEvent]]]
"""The run and its children, each with what stands before the ids of its calls, and its events."""


def events(found: Family) -> list[replay.AnyEvent]:
    """Every event of a family, run after run. Children's have paths for ids."""
    return [_with_path(event, path) if path else event for path, history in found.values() for event in history]


def family(store: eventlog.Store, root: str) -> Family:
    """The family of a run; nobody has events when there is no such run yet."""
    found, runs = Family(), {root: ""}
    while runs.keys() > found.keys():
        run = next(run for run in runs if run not in found)
        found[run] = runs[run], [event for line in lines(store, run) for event in line]
        for event in found[run][1]:
            if isinstance(event, ChildStarted):
                runs.setdefault(event.run, f"{runs[run]}{event.call}:")
    return found


def lines(store: eventlog.Store, run: str) -> list[list[replay.AnyEvent]]:
    """The events of each line of a run; none when there is no such run."""
    try:
        found = store.read(run).lines
    except eventlog.NoSuchRun:
        return []
    return [[replay.decode(raw, seq=line.seq) for raw in line.events] for line in found]


def _with_path(event: replay.AnyEvent, path: str) -> replay.AnyEvent:
    """An event of a child with its calls and questions named as its root names them."""
    if isinstance(event, ReplySaved):
        calls = tuple(replace(call, id=f"{path}{call.id}") for call in event.reply.calls)
        return replace(event, reply=replace(event.reply, calls=calls))
    names = ("call", "id") if isinstance(event, QuestionAsked | QuestionAnswered) else ("call",)
    given = {name: getattr(event, name, None) for name in names}
    return replace(event, **{name: f"{path}{said}" for name, said in given.items() if said is not None})


def images(machine: Machine, seed: int) -> list[Image]:
    """What a power cut may leave of a machine's disk now: at most `IMAGES` of what may be, no two alike.

    Every directory with a name that is not durable multiplies the images: of many, the first and the last are taken,
    where nothing and everything was kept, and others between them that `seed` draws.
    """
    last = len(machine.trace)
    found = cuts(machine.trace, start=machine.image, first=last, limit=IMAGES, seed=seed)
    each = [cut.image for cut in found]
    if len(each) <= IMAGES:
        return each
    drawn = random.Random(f"{seed}:{last}").sample(range(1, len(each) - 1), IMAGES - 2)  # noqa: S311 (picks examples)
    return [each[at] for at in (0, *sorted(drawn), len(each) - 1)]
