"""The census: every sweep there is, cut into pieces that two processes share, and one count at the end.

Distinct images are counted over all pieces together, so an image that two of them meet counts once.
"""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

from tests.eventlog.powerloss.sweep import Tally, deaths, failing_syncs, power, sequences, two_deaths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from eventlog.simdisk import Model

    Piece = Callable[[Path | None], Tally]

MODELS: tuple[Model, ...] = ("ext4", "posix")
PROCESSES = 2
STORIES: tuple[tuple[str, ...], ...] = (
    ("create", "two", "one", "one"),
    ("create", "close", "two", "one"),
    ("create", "one", "reopen", "two", "one"),
    ("create", "room", "one"),
    ("create", "pages", "one"),
    ("create", "edge", "past", "one"),
    ("create", "two", "close", "one"),
    ("create", "two", "roll", "one"),
    ("create", "one", "snapshot", "two", "snapshot", "one", "snapshot"),
)
"""What is played under deaths and failing syncs."""


def pieces(*, longest: int, inside: int, limit: int) -> Iterator[Piece]:
    """Give the census in pieces: sequences of up to `longest` steps, one image in `inside` swept on inside recovery."""
    steps = list(sequences(longest))
    for start in range(0, len(steps), 16):
        yield partial(_sequences, steps[start : start + 16], inside=inside, limit=limit)
    for story in STORIES:
        yield partial(_deaths, story)
        yield partial(_failing_syncs, story)
    yield partial(_two_deaths, ("create", "two", "one", "one"))


def counted_side_by_side(found: Iterator[Piece], place: Path | None = None) -> tuple[Tally, float]:
    """Count pieces in two processes; give the seconds it took too."""
    began = time.monotonic()
    total = Tally(place)
    with ProcessPoolExecutor(PROCESSES, mp_context=multiprocessing.get_context("spawn")) as pool:
        for tally in pool.map(partial(_count, place), found):
            total.add(tally)
    return total, time.monotonic() - began


def _count(place: Path | None, piece: Piece) -> Tally:
    tally = piece(place)
    tally.forget()
    return tally


def _sequences(steps: list[tuple[str, ...]], place: Path | None, *, inside: int, limit: int) -> Tally:
    tally = Tally(place)
    for sequence, model in product(steps, MODELS):
        power(tally, sequence, model, since="last step", limit=limit, inside=inside)
    return tally


def _deaths(story: tuple[str, ...], place: Path | None) -> Tally:
    tally = Tally(place)
    for fault, model in product(deaths(story), MODELS):
        power(tally, story, model, since="fault", faults=[fault], limit=8)
    return tally


def _two_deaths(story: tuple[str, ...], place: Path | None) -> Tally:
    tally = Tally(place)
    for faults in two_deaths(story):
        power(tally, story, since="fault", faults=faults, limit=6)
    return tally


def _failing_syncs(story: tuple[str, ...], place: Path | None) -> Tally:
    tally = Tally(place)
    for fault, model in product(failing_syncs(story), MODELS):
        power(tally, story, model, since="fault", faults=[fault], limit=8)
    return tally
