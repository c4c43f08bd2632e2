"""The verdict on one scenario: its effects compared with an undisturbed run's, and the log compared with both.

A wrong answer of a person may cost the effect that it was about, and nothing else. An effect that could not happen
because of it, and is recorded as failed, is not counted as lost: the log and the model say so.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

import eventlog
import replay
from replay import events as logged
from runner.testing._history import RUN, Family, events, family, lines
from runner.testing._person import MISTAKEN
from runner.testing._service_faults import Attempt
from runner.testing._world import World


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario and its verdict.

    Attributes:
        id: Repeats it: `sweep(only=id)`.
        mode: Its mode.
        first: The name of its first point.
        second: The name of its second point, or empty.
        duplicates: Effects that happened more often than in the undisturbed run.
        lost: Effects that did not happen.
        paid_twice: Replies that the model gave twice.
        questions: Ids of the questions that a person was asked because a call was in doubt.
        unfinished: Whether the run did not finish.
        in_doubt: Calls that had begun and had no result on the disk at a death.
        wrong_answers: How many of the person's answers were wrong.
        why: What is wrong; empty when nothing is.
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
    in_doubt: tuple[str, ...] = ()
    wrong_answers: int = 0
    why: tuple[str, ...] = ()


@dataclass(frozen=True)
class Baseline:
    """The undisturbed run: its points, its attempts that can act, the counts of effects.

    `acting` are the calls that did act, `decided` what was said to each that needed an approval, with the digest of
    what was shown; `weights` counts a call's effects.
    """

    points: tuple[str, ...]
    attempts: tuple[Attempt, ...]
    acting: frozenset[str]
    decided: dict[tuple[str, str], str]
    effects: dict[str, int]
    weights: dict[str, int]

    @property
    def approved(self) -> frozenset[str]:
        return approved(self.decided)


def judge(world: World, baseline: Baseline, id: str, mode: str, first: str, second: str = "") -> Scenario:  # noqa: A002 (the field's name)
    """Compare a scenario with the undisturbed run."""
    finished = world.how == "finished"
    differ, duplicates, lost = differences(world.effects(), baseline.effects, finished=finished)
    spoilt, found = verified(world.logs(), RUN) if finished else ("", Family())
    history = events(found)
    if world.refused:
        lost = 0  # the model may go another way after a refusal
    if world.wrong_answers:
        lost = max(0, lost - _known_to_have_failed(world, baseline, history))
    why = list(world.problems)
    stopped = world.mail == "stop" and world.how.startswith("StoppedByPerson")
    if not (finished or stopped):
        why.append(world.how)
    if duplicates + lost > sum(baseline.weights.get(call, 1) for call in world.wrong_answers.values()):
        why += _causes(world, baseline, history) if duplicates else ()
        why.append(differ)
    why += [f"{call} ran, and its approval was refused" for call in world.refused if world.acted[call]]
    why += _unheard(world)
    if finished:
        why += [f"the log does not verify: {spoilt}"] if spoilt else _of_the_log(world, baseline, found)
    return Scenario(
        id=id,
        mode=mode,
        first=first,
        second=second,
        duplicates=duplicates,
        lost=lost,
        paid_twice=world.paid_twice,
        questions=tuple(world.asked),
        unfinished=not (finished or stopped),
        in_doubt=tuple(dict.fromkeys(call for death in world.deaths for call in death)),
        wrong_answers=len(world.wrong_answers),
        why=tuple(why),
    )


def _unheard(world: World) -> Iterator[str]:
    """Whether the run went on although somebody had parked or stopped it: one line may have been under way."""
    history = lines(world.logs(), RUN) if world.said else []
    taken = [
        event.request for line in history for event in line if isinstance(event, logged.RunStopped) and event.request
    ]
    if len(set(taken)) < len(taken):
        yield f"a request was taken twice: {', '.join(taken)}"
    for seq in world.said:
        begun = 0
        for line in history[seq + 1 :]:
            if any(
                isinstance(e, logged.RequestRefused) or getattr(e, "request", None)
                for e in line
                if not isinstance(e, logged.MessageReceived)
            ):
                break
            begun += any(
                isinstance(event, logged.ModelAsked | logged.AttemptMarked | logged.LookupAsked) for event in line
            )
        if begun > 1:
            yield f"the run went on after somebody had said {world.mail}, after line {seq}"


def differences(had: Mapping[str, int], wanted: Mapping[str, int], *, finished: bool) -> tuple[str, int, int]:
    """By how much the effects differ from what is wanted, how many are too many, and how many a finished run lost."""
    names = sorted({*had, *wanted} if finished else had)
    more = {name: had.get(name, 0) - wanted.get(name, 0) for name in names}
    lost = sum(max(0, -number) for number in more.values()) if finished else 0
    said = ", ".join(f"{name} {number:+d}" for name, number in more.items() if number)
    return f"effects differ from those of an undisturbed run: {said}", sum(max(0, n) for n in more.values()), lost


def verified(store: eventlog.Store, root: str) -> tuple[str, Family]:
    """What a verification of a run's log and of its children's finds first, and the family if it finds nothing."""
    try:
        found = family(store, root)
    except eventlog.LogDamaged as damaged:
        return str(damaged), {}
    for run in found:
        verdict = store.verify(run)
        if not verdict.ok:
            return str(verdict.findings), {}
    return "", found


def of_a_finished_run(state: replay.State, found: Family, workspace: Path, again: int, deaths: int) -> Iterator[str]:
    """What is wrong in its logs and its workspace, whoever killed it; its models gave `again` replies twice."""
    had, calls, used = Counter[str](), Counter[str](), Counter(input=0, output=0)
    for event in events(found):
        match event:
            case logged.ReplySaved():
                calls.update(call.id for call in event.reply.calls)
                used.update(input=event.reply.usage.input_tokens, output=event.reply.usage.output_tokens)
            case logged.CallsMade():
                calls.update(call.id for call in event.calls)
            case logged.ResultRecorded():
                had[event.call] += 1
    if had != calls:
        yield f"not every call has exactly one result: {dict(calls - had)} {dict(had - calls)}"
    if state.in_doubt:
        yield f"left in doubt: {', '.join(state.in_doubt)}"
    if again > min(deaths * max(1, len(found) - 1), lost := state.spent.lost_asks):
        yield f"{again} replies were asked for twice, in {deaths} deaths; the log has {lost} lost asks"
    spent = {"input": state.spent.input_tokens, "output": state.spent.output_tokens}
    if spent != used:
        yield f"the run says that it spent {spent} tokens, and the replies of it and its children have {dict(used)}"
    left = [path.name for path in workspace.rglob(".refold-tmp-*")]
    if left:
        yield f"left in the workspace: {', '.join(left)}"


def _of_the_log(world: World, baseline: Baseline, found: Family) -> Iterator[str]:
    """What is wrong in the log of a finished run."""
    history = events(found)
    without = baseline.approved - approved(decisions(history))
    for event in history:
        match event:
            case logged.AttemptMarked() if event.n == 1 and event.call in without:
                yield f"{event.call} ran without the approval that it had in the undisturbed run"
            case logged.ResultRecorded():
                yield from _false_records(world, baseline, event)
            case logged.QuestionAnswered() if event.id in world.wrong_answers and event.who != MISTAKEN:
                yield f"the log says that {event.who} answered {event.id}"
    yield from of_people(world, baseline, history)
    yield from of_a_finished_run(world.state, found, world.folder / "workspace", world.paid_twice, len(world.deaths))


def of_people(world: World, baseline: Baseline, history: Sequence[replay.AnyEvent]) -> Iterator[str]:
    """What was said to a finished run, and what it made of that."""
    for (call, shown), answer in decisions(history).items():
        if answer.startswith(("refuse", "respond")) and world.acted[call]:
            yield f"{call} ran, and the answer was: {answer}"
        wanted = baseline.decided.get((call, shown), answer)
        if answer != wanted and call not in world.refused:
            yield f"{call} was decided as {wanted} in the undisturbed run, and here as {answer}"
    sent = [event.id for event in history if isinstance(event, logged.MessageReceived)]
    taken = [one for event in history if isinstance(event, logged.ModelAsked) for one in event.messages]
    if len(sent) != world.sent or taken != sent:
        yield f"{int(world.sent)} messages were sent, {len(sent)} came, and the model was given {len(taken)}"


def decisions(history: Sequence[replay.AnyEvent]) -> dict[tuple[str, str], str]:
    """What was said to each call that needed an approval, with the digest of what was shown."""
    asked = {
        event.id: event for event in history if isinstance(event, logged.QuestionAsked) and event.kind == "approve"
    }
    return {
        (asked[event.id].call, event.digest): f"{event.answer} {event.arguments or event.text}".strip()
        for event in history
        if isinstance(event, logged.QuestionAnswered) and event.id in asked
    }


def approved(decided: Mapping[tuple[str, str], str]) -> frozenset[str]:
    """The calls that a person approved, of all that was decided."""
    return frozenset(call for (call, _), answer in decided.items() if answer.startswith(("approve", "edit")))


def _causes(world: World, baseline: Baseline, history: Sequence[replay.AnyEvent]) -> Iterator[str]:
    """For each call that acted again: what the runner believed when it tried again."""
    declared = {attempt.call: attempt for attempt in baseline.attempts}
    for call, times in world.acted.items():
        if times > 1 and call in declared:
            tool, effect = declared[call].tool, declared[call].effect
            yield f"{call} {tool} ran again: {_rung(call, effect, history)}"


def _rung(call: str, effect: str, history: Sequence[replay.AnyEvent]) -> str:
    """Why the last attempt of a call was made, in words."""
    reason = {
        "keyed": "the service took its key twice",
        "idempotent": "it is declared idempotent, and it is not",
    }.get(effect, "it is declared to do nothing that a repeat would do twice")
    why = reason
    for event in history:
        match event:
            case logged.LookupAnswered() if event.call == call:
                why = "its lookup said that it was missing" if event.said == "missing" else reason
            case logged.QuestionAnswered() if event.id.startswith(f"{call}-settle"):
                why = f"{event.who} answered {event.answer}"
            case logged.AttemptEnded() if event.call == call and event.did == "nothing":
                why = "its attempt said that it did nothing"
            case logged.AttemptMarked() if event.call == call and event.n > 1:
                return why
    return why


def _known_to_have_failed(world: World, baseline: Baseline, history: Sequence[replay.AnyEvent]) -> int:
    """How many effects did not happen and are recorded as failed, because of a wrong answer about another one.

    For example: a person says that an issue was filed, and then the comment on it fails. The record is true.
    """
    return sum(
        isinstance(event, logged.ResultRecorded)
        and event.how == "failed"
        and event.call in baseline.acting
        and event.call not in world.wrong_answers.values()
        and not world.acted[event.call]
        for event in history
    )


def _false_records(world: World, baseline: Baseline, result: logged.ResultRecorded) -> Iterator[str]:
    acted, call = world.acted[result.call], result.call
    if call not in baseline.acting or call in world.wrong_answers.values():
        return
    if result.how in ("ran", "found", "stated") and not acted:
        yield f"{call} is recorded as {result.how}, and it never happened"
    if result.how in ("failed", "invalid", "refused") and acted:
        yield f"{call} is recorded as {result.how}, and it happened"
