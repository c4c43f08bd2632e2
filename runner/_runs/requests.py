"""Requests from outside: what one says, whether it fits the state, and the holder's view of a run's inbox.

A request is untrusted bytes. What fits becomes the event that it asks for, which carries the request's name and the
random mark of its post, and takes the name: exactly one request of a name is ever accepted. What does not fit becomes
`request_refused`, which takes no name. The file is removed once the line is durable; after a death in between, the
state knows the name or the mark, and the file is only removed. Once a run is over nothing is written any more: late
requests are removed, and whoever posted one reads the end from the state.

A stop or a park waits until nothing is in flight, so that outcomes stand before it.
"""

import math
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, get_args

import msgspec
from msgspec.structs import replace

import eventlog
import replay
from replay import Event, State
from replay.events import MessageReceived, QuestionAnswered, RequestRefused, RuleAdded, RunStopped
from replay.values import Taken, Verdict
from runner import _logging
from runner._agent import json_text, sanitize
from runner._clock import Clock, LogClock
from runner._runs import status
from runner._runs.questions import answered, rule
from runner.errors import RunError

MARK = 8
"""Random bytes of a post's mark."""
AGAIN = 1.0
"""Seconds until a request is looked at again that could not be read, or was gone."""
Kind = Literal["answer", "rule", "message", "park", "stop"]
"""In the order in which requests that lie there together are taken."""


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One request, as its file holds it. `post` is the random mark of this post; the rest depends on the kind."""

    kind: Kind
    who: str
    post: str
    question: str = ""
    verdict: Verdict | None = None
    text: str = ""
    tool: str = ""
    arguments: dict[str, msgspec.Raw] = {}


def message(state: State, name: str, who: str, text: str) -> MessageReceived:
    """The event of a message. Raises `NoName`, and `ValueError` for one without text."""
    if state.framework:
        raise ValueError(f"its program has a loop of its own ({state.framework}), which takes no messages")
    if not isinstance(text, str):
        raise ValueError(f"it is {text!r:.60}, not text")  # noqa: TRY004 (a request's fault)
    said = sanitize.clean(text)
    if not said.strip():
        raise ValueError("it has no text")
    return MessageReceived(id=name, who=sanitize.name(who, f"a message to {state.run}"), text=said)


def _stop(state: State, kind: Literal["park", "stop"], who: str) -> RunStopped:
    who, parks = sanitize.name(who, f"a {kind} of {state.run}"), kind == "park"
    if parks and state.stopped is not None and state.stopped.reason == "Parked":
        raise ValueError("it is parked already")
    return RunStopped(reason="Parked" if parks else "StoppedByPerson", final=not parks, detail=f"by {who}", who=who)


def _wanted(state: State, request: Request, name: str) -> Event:
    """The event that a request asks for. Raises `RunError` or `ValueError` where it does not fit."""
    names = {"answer": f"answer-{request.question}", "park": name, "stop": name}
    if name != names.get(request.kind, f"{request.kind}-{request.post}") or request.kind != name.partition("-")[0]:
        raise ValueError("its name is another request's")
    event: QuestionAnswered | RuleAdded | MessageReceived | RunStopped
    if request.kind == "answer":
        if request.verdict is None:
            raise ValueError("it has no verdict")
        event = answered(state, request.question, request.verdict, request.who, request.text)
    elif request.kind == "rule":
        values = {argument: json_text.read(bytes(value).decode()) for argument, value in request.arguments.items()}
        event = rule(state, request.tool, values, request.who)
    elif request.kind == "message":
        event = message(state, name, request.who, request.text)
    else:
        event = _stop(state, request.kind, request.who)
    return replace(event, request=name, post=request.post)


class Inbox:
    """The inbox of a run that this process holds. `held` are stops and parks that wait for what is in flight."""

    def __init__(self, log: eventlog.Log) -> None:
        self.held: dict[str, RunStopped] = {}
        self._log = log
        self._seen: dict[str, float] = {}
        """Until when, by the monotonic clock, what was looked at is not new."""
        self._over: list[str] = []

    def has_new(self) -> bool:
        """Whether something lies there that was not looked at."""
        return any(map(self._is_new, self._log.inbox()))

    def take(self, state: State, now: datetime) -> list[Event]:
        """The events to write for what lies there. Call `saved` once they are durable."""
        if state.unknown or state.phase == "new":
            return []
        events: list[Event] = []
        for name in sorted(filter(self._is_new, self._log.inbox()), key=_order):
            data = self._log.request(name)
            self._seen[name] = math.inf if data is not None else time.monotonic() + AGAIN
            if data is None:
                continue
            event = None if state.over or name in state.taken else _fitted(state, name, data, now)
            if event is None and state.over:
                _logging.logger(run=self._log.run).warning("a request came too late", request=name)
            if isinstance(event, RunStopped):
                self.held[name] = event
                continue
            self._over.append(name)
            if event is not None:
                events.append(event)
                state = replay.step(state, event, now)
        return events

    def ending(self) -> list[Event]:
        """The stop or park that was held, and refusals of the others: a stop comes before a park."""
        if not self.held:
            return []
        chosen = next((stop for stop in self.held.values() if stop.final), None) or next(iter(self.held.values()))
        self._over += [name for name, stop in self.held.items() if stop is chosen]
        self.held = {name: stop for name, stop in self.held.items() if stop is not chosen}
        return [*self.refuse(f"{chosen.who} asked for another end"), chosen]

    def refuse(self, why: str) -> list[Event]:
        """Refusals of all that is held."""
        held, self.held = self.held, {}
        self._over += held
        return [RequestRefused(request=name, who=stop.who, why=why, post=stop.post) for name, stop in held.items()]

    def saved(self) -> None:
        """What was taken is durable: its files go. One that can't be removed is not new again in this life."""
        if self._over:
            over, self._over = self._over, []
            for name in self._log.acknowledge(over):
                self._seen.pop(name, None)

    def _is_new(self, name: str) -> bool:
        return self._seen.get(name, -math.inf) < time.monotonic()


def take_all(log: eventlog.Log, before: State, clock: Clock, news: Sequence[Event] = ()) -> State:
    """Take all that lies in the inbox of a run that nothing is in flight of, after `news` of its family.

    Raises what a save raises.
    """
    inbox = Inbox(log)
    if not (news or inbox.has_new()):
        return before
    now = LogClock(clock, before.at).now()
    state = replay.fold(before, now, news)
    events = [*news, *inbox.take(state, now), *inbox.ending()]
    if events:
        state = replay.fold(before, now, events)
        line = log.append(now, [replay.encode(event) for event in events], status=status.of(state, now))
        state = replace(state, seq=line.seq, life=line.life, at=line.at)
    inbox.saved()
    return state


def _order(name: str) -> tuple[int, str]:
    kind = name.partition("-")[0]
    first = get_args(Kind)
    return first.index(kind) if kind in first else len(first), name


def _fitted(state: State, name: str, data: bytes | str, now: datetime) -> Event | None:
    """The event that a request comes to; None when it was refused before and its file outlived a death."""
    refusal = RequestRefused(request=name, who="", why=data if isinstance(data, str) else "it is no request", post="")
    try:
        if isinstance(data, bytes):
            refusal = replace(refusal, post=replay.digest(data)[: 2 * MARK])
            request = msgspec.json.decode(data, type=Request)
            who = sanitize.clean(request.who, sanitize.MAX_NAME)
            refusal = replace(refusal, who=who, post=sanitize.clean(request.post, 4 * MARK))
            event = _wanted(state, replace(request, post=refusal.post), name)
            replay.encode(event)
            replay.step(state, event, now)
            return event
    except (RunError, ValueError, msgspec.MsgspecError) as error:
        refusal = replace(refusal, why=sanitize.error(str(error)))
    except Exception as error:  # noqa: BLE001 (whatever a hostile request raises, it hurts nobody else)
        refusal = replace(refusal, why=f"it does not fit: {type(error).__name__}")
    known = state.refused.get(name)
    return None if known == Taken(who=refusal.who, post=refusal.post, why=refusal.why) else refusal
