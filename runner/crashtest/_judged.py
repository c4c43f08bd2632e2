"""The judgement of one scenario: what is in the world against what an undisturbed run leaves, and the log against both.

A person who was wrong may cost the effect they were wrong about, and nothing else. What could not happen because of it,
and is recorded as failed, is not counted: nobody was told otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

import eventlog
import replay
from runner.crashtest._lives import Lives, events
from runner.crashtest._person import LIAR
from runner.crashtest._process import Process
from runner.crashtest._stage import RUN, RUNS, Played


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario and what it came to.

    `id` repeats it (`sweep(only=id)`); `first` and `second` name its points. `duplicates` and `lost` are effects,
    `paid_twice` replies, `questions` those of the ladder that a person was asked, `open` the calls that had begun and
    had no result on the disk at a death, `lies` the wrong answers. `why` says what is wrong, and is empty when nothing
    is.
    """

    id: str
    mode: str
    first: str
    second: str = ""
    duplicates: int = 0
    lost: int = 0
    paid_twice: int = 0
    questions: tuple[str, ...] = ()
    unfinished: bool = False
    open: tuple[str, ...] = ()
    lies: int = 0
    why: tuple[str, ...] = ()


@dataclass(frozen=True)
class Base:
    """The undisturbed run: its points, its attempts of what can act, the calls that did act, what happened."""

    points: tuple[str, ...]
    attempts: tuple[Played, ...]
    acting: frozenset[str]
    effects: dict[str, int]


def judged(lives: Lives, base: Base, *, id: str, mode: str, first: str, second: str = "") -> Scenario:  # noqa: A002 (the field's name)
    """What a scenario came to."""
    stage = lives.stage
    finished = lives.how == "finished"
    had = stage.effects()
    names = {*had, *base.effects} if finished else set(had)
    more = {name: had.get(name, 0) - base.effects.get(name, 0) for name in sorted(names)}
    duplicates = sum(max(0, number) for number in more.values())
    lost = sum(max(0, -number) for number in more.values()) if finished else 0
    verdict = eventlog.verify(RUNS, RUN, disk=Process(stage.machine)) if finished else None
    history = events(stage.machine) if verdict is not None and verdict.ok else []
    if stage.lies:
        lost = max(0, lost - _told_to_have_failed(lives, base, history))
    why = list(stage.problems)
    if not finished:
        why.append(lives.how)
    if duplicates + lost > len(stage.lies):
        said = ", ".join(f"{name} {number:+d}" for name, number in more.items() if number)
        why.append(f"effects differ from those of an undisturbed run: {said}")
    if verdict is not None:
        why += _of_the_log(lives, base, history) if verdict.ok else [f"the log does not verify: {verdict.findings}"]
    return Scenario(
        id=id,
        mode=mode,
        first=first,
        second=second,
        duplicates=duplicates,
        lost=lost,
        paid_twice=sum(number - 1 for number in stage.heard.values()),
        questions=tuple(stage.asked),
        unfinished=not finished,
        open=tuple(dict.fromkeys(call for death in lives.deaths for call in death.open)),
        lies=len(stage.lies),
        why=tuple(why),
    )


def _of_the_log(lives: Lives, base: Base, history: Sequence[replay.AnyEvent]) -> Iterator[str]:
    """What is wrong with a finished run's log, by itself and against the truth."""
    stage, state = lives.stage, lives.state
    had, calls, lost = Counter[str](), list[str](), state.spent.lost_asks
    for event in history:
        match event:
            case replay.ReplySaved():
                calls += [call.id for call in event.reply.calls]
            case replay.ResultRecorded():
                had[event.call] += 1
                yield from _against_the_truth(lives, base, event)
            case replay.QuestionAnswered() if event.id in stage.lies and event.who != LIAR:
                yield f"the log says that {event.who} answered {event.id}"
    if had != Counter(calls):
        yield f"not every call has exactly one result: {dict(Counter(calls) - had)} {dict(had - Counter(calls))}"
    if state.open:
        yield f"left open: {', '.join(state.open)}"
    again = sum(number - 1 for number in stage.heard.values())
    if again > lost or again > len(lives.deaths):
        yield f"{again} replies were paid twice, in {len(lives.deaths)} deaths; the log has {lost} lost asks"
    left = [path.name for path in (stage.folder / "workspace").rglob(".refold-tmp-*")]
    if left:
        yield f"left in the workspace: {', '.join(left)}"


def _told_to_have_failed(lives: Lives, base: Base, history: Sequence[replay.AnyEvent]) -> int:
    """How many effects did not happen, and the model was told so: a wrong answer's consequence, and nobody's loss.

    Who says that an issue was filed makes its comment fail; what the log says of the comment is true.
    """
    return sum(
        isinstance(event, replay.ResultRecorded)
        and event.how == "failed"
        and event.call in base.acting
        and event.call not in lives.stage.lies.values()
        and not lives.stage.acted[event.call]
        for event in history
    )


def _against_the_truth(lives: Lives, base: Base, result: replay.ResultRecorded) -> Iterator[str]:
    acted, call = lives.stage.acted[result.call], result.call
    if call not in base.acting or call in lives.stage.lies.values():
        return
    if result.how in ("ran", "found", "told") and not acted:
        yield f"{call} is recorded as {result.how}, and it never happened"
    if result.how in ("failed", "invalid", "refused") and acted:
        yield f"{call} is recorded as {result.how}, and it happened"
