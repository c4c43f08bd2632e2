"""A state or an event in words for a person, one line each."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import asdict, replace

import eventlog
import replay
from replay import State
from replay import events as logged
from replay.state import Spent
from replay.values import Effect, StopReason

MAX_PAYLOAD = 100


def _quoted(text: str, most: int = MAX_PAYLOAD) -> str:
    return text if len(text) <= most else f"{text[:most]}..."


def money(dollars: float | None) -> str:
    """Dollars, to a hundredth of a cent; what is less than half of one is not shown as nothing."""
    if dollars is None:
        return "unpriced"
    return "<$0.0001" if 0 < dollars < 0.00005 else f"${dollars:.4f}"  # noqa: PLR2004 (half a hundredth of a cent)


PAUSED = "paused, waits for a person"


def phase(state: State) -> str:
    """Where the run stands, in a few words."""
    if state.stopped is not None:
        return f"{state.phase}, {stopped(state.stopped)}"
    return PAUSED if state.phase == "paused" and state.waiting else state.phase


def stopped(why: StopReason | logged.RunStopped) -> str:
    """That a run stopped, and by which rule."""
    return f"stopped{' for good' if why.final else ''} ({why.reason})"


def spent(used: Spent, limit: float | None = None) -> str:
    """What a run has used, of `limit` dollars if there is one. Requests without a reply count by their bounds."""
    dollars = money(used.total_dollars) + (f" of {money(limit)}" if limit is not None else "")
    lost = f", {money(used.lost_dollars)} of it the bounds of {used.lost_asks} lost asks" if used.lost_asks else ""
    unknown = f", and {used.unpriced} requests of unknown price" if used.unpriced else ""
    return f"{dollars}{lost}{unknown}; {used.tokens:,} tokens"


def turns(state: State) -> str:
    """Turns against their limit."""
    return str(state.turns) if state.limits.turns is None else f"{state.turns} of {state.limits.turns}"


def repeat(effect: Effect) -> str:
    """What happens to a call of this effect when the process dies before its result is saved."""
    return {
        "reads": "it only reads, so it simply runs again",
        "idempotent": "a repeat does nothing new, so it runs again",
        "keyed": "the service is sent the same key, so a repeat counts once while it remembers the key",
        "non_idempotent": "a repeat could do it twice, so the tool's lookup is asked first, else a person",
    }[effect]


def _tool(state: State, call: str) -> str:
    found = state.find(call)
    return f"{call} {found.call.tool}" if found is not None else call


ENDED = {"nothing": "certainly did nothing", "unknown": "may have acted"}
"""What an attempt did that did not return."""


def _more(form: str, text: str | None) -> str:
    """A text in its form, or nothing if there is none."""
    return form.format(_quoted(text)) if text else ""


def _reply(event: logged.ReplySaved, state: State) -> str:
    reply = event.reply
    calls = ", ".join(call.tool for call in reply.calls)
    what = f"calls {calls}" if calls else f"says {_quoted(reply.text) or 'nothing'}"
    tokens = f"{reply.usage.input_tokens} + {reply.usage.output_tokens} tokens"
    return f"turn {state.turns}: {what} ({tokens}, {money(reply.dollars)})"


def _resumed(event: logged.RunResumed, state: State) -> str:
    counted = f"resume {state.resumes} of {state.limits.resumes}" if event.counted else "resumed"
    back = "; the clock was set back" if event.clock_back else ""
    back += "; what held it before may still act" if event.lease_lost else ""
    still = f"; in doubt: {', '.join(state.in_doubt)}" if state.in_doubt else ""
    return f"{counted}, process {event.pid} on {event.host}{back}{still}"


def _rested(event: logged.ChildRested) -> str:
    """How a child run rests."""
    if event.stop is not None:
        return f"stopped ({event.stop.reason})"
    if event.questions:
        return f"asks {', '.join(f'{event.call}:{asked.id}' for asked in event.questions)}"
    return "is done" if event.phase == "done" else f"rests in phase {event.phase}"


def _changed(event: logged.LimitsChanged, _: State) -> str:
    limits = asdict(event.limits).items()
    return "limits are now " + ", ".join(f"{name} {value}" for name, value in limits if value is not None)


def _step(event: logged.StepRecorded) -> str:
    if event.error:
        return f" failed: {_quoted(event.error)}"
    return f": {_quoted(event.raw)}" if event.raw else " ended the program, and is tried again"


SAID: dict[type[Any], Callable[[Any, State], str]] = {
    logged.RunStarted: lambda e, _: f"{e.run} starts: {_quoted(e.task)}",
    logged.RunForked: lambda e, _: f"{e.run} is forked from {e.parent} at line {e.seq}",
    logged.RunResumed: _resumed,
    logged.LimitsChanged: _changed,
    logged.WorkspaceMoved: lambda e, _: f"the workspace is {e.path} from here on",
    logged.WorkspaceAccepted: lambda e, _: f"{e.by} accepts {', '.join(file.path for file in e.files)} as they are",
    logged.ModelAsked: lambda e, s: (
        f"turn {s.turns + 1}: asks the model for a {'reply' if e.purpose == 'turn' else e.purpose}"
    ),
    logged.ReplySaved: _reply,
    logged.CallsMade: lambda e, _: f"the program calls {', '.join(call.tool for call in e.calls)}",
    logged.StepRecorded: lambda e, _: f"step {e.name} {e.n}{_step(e)}",
    logged.ReplyRefused: lambda e, _: f"that is no answer; the model reads: {_quoted(e.why)}",
    logged.ModelFailed: lambda e, _: (
        f"the model failed: {_quoted(e.error)}{'' if e.transient else '; asking again is pointless'}"
    ),
    logged.AttemptMarked: lambda e, s: f"{_tool(s, e.call)}: attempt {e.n} ({e.effect}, key {e.key})",
    logged.AttemptEnded: lambda e, s: f"{_tool(s, e.call)}: attempt {e.n} {ENDED[e.did]}: {_quoted(e.error)}",
    logged.ResultRecorded: lambda e, s: f"{_tool(s, e.call)}: {e.how}: {_quoted(e.text)}",
    logged.ChildStarted: lambda e, s: f"{_tool(s, e.call)}: run {e.run} does it",
    logged.ChildRested: lambda e, s: f"{_tool(s, e.call)}: its run {_rested(e)}, {money(e.spent.total_dollars)} so far",
    logged.LookupAsked: lambda e, s: f"{_tool(s, e.call)}: asks the service whether it happened",
    logged.LookupAnswered: lambda e, s: f"{_tool(s, e.call)}: the service says {e.said}{_more(' ({})', e.error)}",
    logged.QuestionAsked: lambda e, _: f"question {e.id}: {e.kind} {e.tool} {_quoted(e.arguments)} ({e.why})",
    logged.QuestionAnswered: lambda e, _: f"question {e.id}: {e.answer}, by {e.who}{_more(': {}', e.text)}",
    logged.RuleAdded: lambda e, _: (
        f"{e.who} allows {e.tool}{_more(' with {}', ', '.join(f'{n} {v}' for n, v in e.arguments.items()))}"
    ),
    logged.MessageReceived: lambda e, _: f"{e.who} writes: {_quoted(e.text)}",
    logged.RequestRefused: lambda e, _: f"refused {e.request}{_more(', by {}', e.who)}: {e.why}",
    logged.FileIntended: lambda e, s: f"{_tool(s, e.call)}: writes {e.path}",
    logged.FileWritten: lambda e, s: f"{_tool(s, e.call)}: wrote {e.path}",
    logged.WaitUntil: lambda e, s: (
        f"{_more('{}: ', _tool(s, e.call) if e.call else None)}waits until {e.until:%H:%M:%S} UTC ({e.why})"
    ),
    logged.PhaseChanged: lambda e, _: {"done": "done", "paused": PAUSED}.get(e.phase, "goes on"),
    logged.RunStopped: lambda e, _: stopped(e) + _more(": {}", e.detail),
    logged.UnknownEvent: lambda e, _: f"{e.tag}, an event of a later version",
}
"""How each kind of event is said; the state has it folded."""


def event(happened: replay.AnyEvent, state: State) -> str:
    """One event in a sentence; `state` has it folded."""
    return SAID[type(happened)](happened, state)


class Seen(NamedTuple):
    """One event of a log, as it stands there and decoded, and the state with it folded."""

    raw: msgspec.Raw
    event: replay.AnyEvent
    state: State


def seen(lines: Iterable[eventlog.Line], state: State = replay.NEW) -> Iterator[Seen]:
    """Every event of some lines that follow a state. Raises what the fold raises."""
    for line in lines:
        for raw in line.events:
            happened = replay.decode(raw, seq=line.seq)
            state = replay.step(state, happened, line.at, seq=line.seq)
            state = replace(state, seq=line.seq, life=line.life, at=line.at)
            yield Seen(raw, happened, state)
