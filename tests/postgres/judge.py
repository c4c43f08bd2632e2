"""What must be true when a torture is over, by the logs and by the witness outside: each sentence says what is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import replay
import runner
from replay.events import AttemptMarked, QuestionAnswered, ReplySaved, ResultRecorded, RunStopped
from tests.postgres.crowd import Crowd
from tests.postgres.fleet import Fleet

ACTS = {"pay", "refund", "send", "mail"}


@dataclass
class Verdict:
    """What is wrong, and how often a freeze after the last check had an effect doubled, which nothing can prevent."""

    wrong: list[str] = field(default_factory=list)
    after_a_freeze: int = 0
    events: Counter[str] = field(default_factory=Counter)


def judge(team: Fleet, crowd: Crowd) -> Verdict:
    """Judge all runs and all effects."""
    verdict, store = Verdict(), crowd.store
    for key, times in team.witness.effects("keyed").items():
        if times > 1:
            verdict.wrong.append(f"keyed effect {key} happened {times} times")
    for key, times in team.witness.effects("once").items():
        if times > 1 and any(map(team.froze_after_its_check, team.witness.requests(key))):
            verdict.after_a_freeze += 1
        elif times > 1:
            verdict.wrong.append(f"effect {key} happened {times} times: {team.witness.requests(key)}")
    names = set(store.names())
    verdict.wrong += [f"{run} is gone" for run in crowd.runs if run not in names]
    for run in sorted(names):
        verdict.wrong += [f"{run}: {why}" for why in _of_a_run(team, crowd, run, verdict.events)]
    return verdict


def _of_a_run(team: Fleet, crowd: Crowd, run: str, seen: Counter[str]) -> Iterator[str]:
    store = crowd.store
    found = store.verify(run)
    if not found.ok:
        yield f"it does not verify: {found.findings}"
        return
    state = runner.read_state(run, store)
    if not state.over:
        yield f"it has not ended: {state.phase} {state.stopped}"
    events = [replay.decode(raw) for line in store.read(run).lines for raw in line.events]
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


def _tools(events: list[replay.AnyEvent]) -> dict[str, str]:
    return {call.id: call.tool for event in events if isinstance(event, ReplySaved) for call in event.reply.calls}


def _of_what_was_said(crowd: Crowd, run: str, events: list[replay.AnyEvent]) -> Iterator[str]:
    """No answer is lost, and none is applied twice."""
    said = [one for one in crowd.said if one.run == run]
    answers = [event for event in events if isinstance(event, QuestionAnswered) and event.who]
    times = Counter(event.id for event in answers)
    yield from (f"{question} has {many} answers" for question, many in times.items() if many > 1)
    given = {(event.id, event.who) for event in answers}
    stops = [event for event in events if isinstance(event, RunStopped) and event.final]
    for one in said:
        heard = (one.question, one.who) in given if one.kind == "answer" else any(e.who == one.who for e in stops)
        if one.came == "accepted" and not heard and not stops:
            yield f"{one} was accepted, and the log does not have it"
        if one.came == "refused" and heard:
            yield f"{one} was refused, and the log has it"
    if len(stops) > 1:
        yield f"it was stopped for good {len(stops)} times"
