"""What must be true when a torture is over, by the logs and by the witness outside: each sentence says what is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import eventlog
import replay
import runner
from replay.events import AttemptMarked, MessageReceived, QuestionAnswered, ReplySaved, ResultRecorded, RunStopped
from replay.messages import UserMessage
from tests.postgres.crowd import Crowd
from tests.postgres.fleet import Fleet

ACTS = {"pay", "refund", "send", "mail", "post"}


@dataclass
class Verdict:
    """What is wrong, and how often a request that came too late doubled an effect, which nothing can prevent."""

    wrong: list[str] = field(default_factory=list)
    late: int = 0
    events: Counter[str] = field(default_factory=Counter)


def judge(team: Fleet, crowd: Crowd) -> Verdict:
    """Judge all runs and all effects."""
    verdict, store = Verdict(), crowd.store
    for key, times in team.witness.effects("keyed").items():
        if times > 1:
            verdict.wrong.append(f"keyed effect {key} happened {times} times")
    for key, times in team.witness.effects("once").items():
        if times > 1 and any(one.is_late for one in team.witness.requests(key)):
            verdict.late += 1
        elif times > 1:
            verdict.wrong.append(f"effect {key} happened {times} times: {team.witness.requests(key)}")
    names = set(store.names())
    verdict.wrong += [f"{run} is gone" for run in crowd.runs if run not in names]
    for run in sorted(names):
        verdict.wrong += [f"{run}: {why}" for why in _of_a_run(team, crowd, run, verdict.events)]
    return verdict


def _of_a_run(team: Fleet, crowd: Crowd, run: str, seen: Counter[str]) -> Iterator[str]:
    store = crowd.store
    try:
        found = store.verify(run)
        state = runner.read_state(run, store)
        events = [replay.decode(raw) for line in store.read(run).lines for raw in line.events]
    except (eventlog.LogError, replay.ReplayError) as error:
        yield f"it can't be read: {error}"
        return
    if not found.ok:
        yield f"it does not verify: {found.findings}"
    if not state.over:
        yield f"it has not ended: {state.phase} {state.stopped}"
    seen.update(replay.tag(event) for event in events)
    keys = {event.call: event.key for event in events if isinstance(event, AttemptMarked)}
    results = Counter(event.call for event in events if isinstance(event, ResultRecorded))
    yield from (f"{call} has {times} results" for call, times in results.items() if times > 1)
    tools = _tools(events)
    for event in events:
        if isinstance(event, ResultRecorded) and event.how in ("ran", "found") and tools.get(event.call) in ACTS:
            key = keys[event.call]
            if not any(one.acted for one in team.witness.requests(key)):
                yield f"{event.call} is recorded as {event.how}, and it never happened"
    yield from _of_what_was_said(crowd, run, events)
    yield from _of_messages(crowd, state, events)


def _tools(events: list[replay.AnyEvent]) -> dict[str, str]:
    return {call.id: call.tool for event in events if isinstance(event, ReplySaved) for call in event.reply.calls}


def _of_what_was_said(crowd: Crowd, run: str, events: list[replay.AnyEvent]) -> Iterator[str]:
    """No answer is lost, and none is applied twice."""
    said = [one for one in crowd.said if one.run == run and one.kind != "message"]
    answers = [event for event in events if isinstance(event, QuestionAnswered) and event.who]
    times = Counter(event.id for event in answers)
    yield from (f"{question} has {many} answers" for question, many in times.items() if many > 1)
    given = {(event.id, event.who) for event in answers}
    stops = [event for event in events if isinstance(event, RunStopped) and event.final]
    for one in said:
        heard = (one.question, one.who) in given if one.kind == "answer" else any(e.who == one.who for e in stops)
        if not heard and (one.came == "written" or (one.came == "left" and not stops)):
            yield f"{one} was accepted, and the log does not have it"
        if one.came == "refused" and heard:
            yield f"{one} was refused, and the log has it"
    if len(stops) > 1:
        yield f"it was stopped for good {len(stops)} times"


def _of_messages(crowd: Crowd, state: runner.State, events: list[replay.AnyEvent]) -> Iterator[str]:
    """None is lost, and none is said to the model twice.

    Only one that was left for a holder may come too late: where the run is done by then, forked, or stopped. A run that
    loops ends by a stop, and takes what was said before that first.
    """
    times = Counter(event.text for event in events if isinstance(event, MessageReceived))
    told = Counter(message.text for message in state.messages[:] if isinstance(message, UserMessage))
    goes_on = state.run.startswith("loops") and not any(run.startswith(f"{state.run}.") for run in crowd.runs)
    for one in (one for one in crowd.said if one.run == state.run):
        if one.kind != "message":
            goes_on = False  # whoever makes a run is the only one who talks to it, so this came later
            continue
        must = one.came == "written" or (one.came == "left" and goes_on)
        if times[one.who] > 1 or told[one.who] > 1 or (one.came == "refused" and times[one.who]):
            yield f"{one}: the log has it {times[one.who]} times, and the model read it {told[one.who]} times"
        elif must and not times[one.who]:
            yield f"{one}: the log does not have it"
