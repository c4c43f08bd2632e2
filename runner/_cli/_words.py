"""How a state and an event are said to a person: one line each, the words of the style guide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import replay
from replay import State

MAX_PAYLOAD = 100


def _quoted(text: str, most: int = MAX_PAYLOAD) -> str:
    return text if len(text) <= most else f"{text[:most]}..."


def money(dollars: float | None) -> str:
    """Dollars, to a hundredth of a cent."""
    return "unpriced" if dollars is None else f"${dollars:.4f}"


def phase(state: State) -> str:
    """Where the run stands, in a few words."""
    if state.stopped is not None:
        final = " for good" if state.stopped.final else ""
        return f"{state.phase}, stopped{final}: {state.stopped.reason}"
    return state.phase


def spent(state: State) -> str:
    """What the run has used, against its limits."""
    used, limits = state.spent, state.limits
    dollars = money(used.total_dollars) + (f" of {money(limits.dollars)}" if limits.dollars is not None else "")
    lost = f", {money(used.lost_dollars)} of it bounds of {used.lost_asks} lost asks" if used.lost_asks else ""
    tokens = f"{used.input_tokens + used.output_tokens:,} tokens"
    return f"{dollars}{lost}; {tokens}"


def turns(state: State) -> str:
    """Turns against their limit."""
    return str(state.turns) if state.limits.turns is None else f"{state.turns} of {state.limits.turns}"


def repeat(effect: replay.Effect) -> str:
    """What happens to a call of this effect when the process dies before its result is saved."""
    return {
        "reads": "it only reads, so it simply runs again",
        "idempotent": "a repeat does nothing new, so it runs again",
        "keyed": "the service is sent the same key, so a repeat counts once while it remembers the key",
        "once": "a repeat could do it twice, so the tool's lookup is asked first, else a person",
    }[effect]


def _tool(state: State, call: str) -> str:
    found = state.find(call)
    return f"{call} {found.call.tool}" if found is not None else call


def _reply(event: replay.ReplySaved, state: State) -> str:
    reply = event.reply
    calls = ", ".join(call.tool for call in reply.calls)
    what = f"calls {calls}" if calls else f"says {_quoted(reply.text)}"
    tokens = f"{reply.usage.input_tokens} + {reply.usage.output_tokens} tokens"
    return f"turn {state.turns}: {what} ({tokens}, {money(reply.dollars)})"


def _asked(event: replay.QuestionAsked, _: State) -> str:
    return f"question {event.id}: {event.kind} {event.tool} {_quoted(event.arguments)} ({event.why})"


def _resumed(event: replay.RunResumed, state: State) -> str:
    counted = f"resume {state.resumes} of {state.limits.resumes}" if event.counted else "resumed after an answer"
    back = "; the clock was set back" if event.clock_back else ""
    still = f"; open: {', '.join(state.open)}" if state.open else ""
    return f"{counted}, process {event.pid} on {event.host}{back}{still}"


def _ended(event: replay.AttemptEnded, state: State) -> str:
    said = "certainly did nothing" if event.did == "nothing" else "may have acted"
    return f"{_tool(state, event.call)}: attempt {event.n} {said}: {_quoted(event.error)}"


def _recorded(event: replay.ResultRecorded, state: State) -> str:
    return f"{_tool(state, event.call)}: {event.how}: {_quoted(event.text)}"


def _looked(event: replay.LookupAnswered, state: State) -> str:
    why = f" ({_quoted(event.error)})" if event.error else ""
    return f"{_tool(state, event.call)}: the service says {event.said}{why}"


def _wait(event: replay.WaitUntil, state: State) -> str:
    whose = f"{_tool(state, event.call)}: " if event.call else ""
    return f"{whose}waits until {event.until:%H:%M:%S} UTC ({event.why})"


def _marked(event: replay.AttemptMarked, state: State) -> str:
    return f"{_tool(state, event.call)}: attempt {event.n} ({event.effect}, key {event.key})"


def _failed(event: replay.ModelFailed, _: State) -> str:
    again = "" if event.transient else "; asking again is pointless"
    return f"the model failed: {_quoted(event.error)}{again}"


def _answered(event: replay.QuestionAnswered, _: State) -> str:
    text = f": {_quoted(event.text)}" if event.text else ""
    return f"question {event.id}: {event.answer}, by {event.who}{text}"


def _stopped(event: replay.RunStopped, _: State) -> str:
    return f"stopped{' for good' if event.final else ''} ({event.reason}): {event.detail}"


def _changed(event: replay.LimitsChanged, _: State) -> str:
    values = {name: getattr(event.limits, name) for name in ("turns", "tokens", "dollars", "resumes")}
    return "limits are now " + ", ".join(f"{name} {value}" for name, value in values.items() if value is not None)


SAID: dict[type[Any], Callable[[Any, State], str]] = {
    replay.RunStarted: lambda e, _: f"{e.run} starts: {_quoted(e.task)}",
    replay.RunForked: lambda e, _: f"{e.run} is forked from {e.parent} at line {e.seq}",
    replay.RunResumed: _resumed,
    replay.LimitsChanged: _changed,
    replay.WorkspaceAccepted: lambda e, _: f"{e.by} accepts {', '.join(file.path for file in e.files)} as they are",
    replay.ModelAsked: lambda e, s: (
        f"turn {s.turns + 1}: asks the model for a {'reply' if e.purpose == 'turn' else e.purpose}"
    ),
    replay.ReplySaved: _reply,
    replay.ModelFailed: _failed,
    replay.AttemptMarked: _marked,
    replay.AttemptEnded: _ended,
    replay.ResultRecorded: _recorded,
    replay.LookupAsked: lambda e, s: f"{_tool(s, e.call)}: asks the service whether it happened",
    replay.LookupAnswered: _looked,
    replay.QuestionAsked: _asked,
    replay.QuestionAnswered: _answered,
    replay.FileIntended: lambda e, s: f"{_tool(s, e.call)}: writes {e.path}",
    replay.FileWritten: lambda e, s: f"{_tool(s, e.call)}: wrote {e.path}",
    replay.WaitUntil: _wait,
    replay.PhaseChanged: lambda e, _: "done" if e.phase == "done" else "paused" if e.phase == "paused" else "goes on",
    replay.RunStopped: _stopped,
    replay.Unknown: lambda e, _: f"{e.tag}, an event of a later version",
}
"""How each kind of event is said; the state has it folded."""


def event(happened: replay.AnyEvent, state: State) -> str:
    """One event in a sentence; `state` has it folded."""
    return SAID[type(happened)](happened, state)
