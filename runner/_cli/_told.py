"""How lives, asks, calls, attempts and questions are said after the fact: the words that audit and report share.

Each is a short sentence about what the log says, in the words of the style guide. Nothing here shortens or escapes:
whoever prints it does.
"""

from __future__ import annotations

from datetime import datetime

from replay import AskStory, AttemptStory, Audit, CallStory, LifeStory, LookupStory, QuestionStory, WaitStory
from runner._cli import _words

MINUTE, HOUR, DAY = 60, 3600, 86_400


RUNG = {
    "first": "the first attempt",
    "harmless": "again, as a repeat is harmless",
    "missing": "again, as the service said that no attempt so far did anything",
    "person": "again, as a person said that no attempt so far did anything",
    "nothing": "again, as the attempt before certainly did nothing",
}
"""Why an attempt was made."""

DID = {
    "ran": "returned",
    "nothing": "certainly did nothing",
    "unknown": "may have acted: it ended without saying",
    "open": "may have acted: its process died in it",
    "in flight": "in flight, or its process died in it",
}
"""What an attempt came to."""

HOW = {
    "ran": "it ran",
    "found": "the service was asked, and it had happened",
    "told": "a person said what it came to",
    "refused": "it was refused",
    "failed": "it failed: every attempt certainly did nothing",
    "invalid": "it could not be run as it was called",
}
"""Where a call's result comes from: the rung of the ladder that settled it, for one that was open."""

WHY = {
    "backoff": "before the next attempt",
    "lands": "until nothing can land any more",
    "lookup": "before asking the service again",
    "model": "before asking the model again",
}
"""What a wait is for."""


def took(seconds: float) -> str:
    """A stretch of time, in two units at most."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < MINUTE:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, unit, rest, least in ((DAY, "d", "h", HOUR), (HOUR, "h", "min", MINUTE), (MINUTE, "min", "s", 1)):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // least} {rest}"
    return f"{whole} s"


def between(began: datetime, ended: datetime | None) -> str:
    """How long it took; "" while nobody knows."""
    return "" if ended is None else took((ended - began).total_seconds())


def moment(at: datetime) -> str:
    """A time, to the second, in UTC."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def lines(first: int, last: int | None = None) -> str:
    """Which lines say so."""
    return f"line {first}" if last is None or last == first else f"lines {first} to {last}"


def life(told: LifeStory) -> str:
    """Who opened the run, and why."""
    who = f"process {told.pid} on {told.host}" if told.pid is not None else "a person"
    counted = "counted" if told.counted else "not counted: a person had answered"
    kind = {
        "start": f"started by {who}",
        "resume": f"resumed by {who}, {counted}",
        "fork": f"forked by {who}",
        "answer": "a person said something from outside",
    }[told.kind]
    return kind + (", and found the clock set back" if told.clock_back else "")


def end(told: LifeStory, *, last: bool) -> str:
    """How a life ended."""
    if told.end == "stopped" and told.stopped is not None:
        detail = f": {told.stopped.detail}" if told.stopped.detail else ""
        return f"stopped{' for good' if told.stopped.final else ''} ({told.stopped.reason}){detail}"
    if told.kind in ("answer", "fork") and told.end in ("unsaid", "paused"):
        return "ended with that"
    if told.end == "unsaid":
        return "still running, or died without a word" if last else "died without a word"
    return {"done": "finished", "paused": "paused: a person decides"}[told.end]


def gap(told: LifeStory, before: LifeStory) -> str:
    """What lies between two lives."""
    between_them = f"{took(told.gap or 0)} nobody wrote"
    if told.kind == "fork":
        return f"{between_them}; behind this line another run begins"
    if before.kind in ("answer", "fork") and before.end != "stopped":
        return between_them
    return f"{between_them}; life {before.life} {end(before, last=False)}"


def ask(told: AskStory) -> str:
    """One ask of the model, and what it cost."""
    again = f", ask {told.n} in a row" if told.n > 1 else ""
    time = between(told.at, told.ended) if told.came in ("replied", "failed") else ""
    words = [f"{time}{again}".removeprefix(", ")]
    if told.usage is not None:
        used = told.usage
        words.append(f"{used.input_tokens:,} + {used.output_tokens:,} tokens")
        if used.cache_read_tokens or used.cache_write_tokens:
            words.append(f"cache {used.cache_read_tokens:,} read, {used.cache_write_tokens:,} written")
        words.append(_words.money(told.dollars))
    if told.came in ("asked", "lost") or told.billed:
        words.append(f"{came(told)}, counts at most {bound(told)}")
    elif told.came == "failed":
        words.append(came(told))
    return ", ".join(word for word in words if word)


def came(told: AskStory) -> str:
    """What an ask came to."""
    return {
        "replied": "replied",
        "failed": f"failed: {told.error}",
        "lost": "the reply never came",
        "asked": "no reply yet",
    }[told.came]


def bound(told: AskStory) -> str:
    """The most an ask could cost."""
    most = told.bound
    dollars = "" if most.dollars is None else f", {_words.money(most.dollars)}"
    return f"{most.input_tokens:,} + {most.output_tokens:,} tokens{dollars}"


def attempt(told: AttemptStory) -> str:
    """One try: its effect, how long it took, what it did, and why it was made."""
    time = between(told.at, told.ended) if told.did in ("ran", "nothing", "unknown") else ""
    why = "" if told.rung == "first" else f" ({RUNG[told.rung]})"
    error = f": {told.error}" if told.error else ""
    return ", ".join(filter(None, (told.effect, time, DID[told.did]))) + error + why


def kept(told: AttemptStory) -> str:
    """How long the service keeps the key."""
    return "" if told.remembers is None else f"the service keeps it for {took(told.remembers)}"


def lookup(told: LookupStory) -> str:
    """One question to the service, and what it said."""
    said = {
        None: "no answer",
        "found": "found",
        "missing": "missing" if told.believes else "missing, too early to be believed",
        "unsure": "unsure",
    }[told.said]
    error = f": {told.error}" if told.error else ""
    return f"{said}{error}"


def question(told: QuestionStory) -> str:
    """One question to a person, with who answered what and when."""
    return f"{asked(told)} {answered(told)}"


def asked(told: QuestionStory) -> str:
    """What a person was asked, and why."""
    what = "may it run?" if told.kind == "approve" else "did it happen?"
    return f"{what} ({told.why})" if told.why else what


def answered(told: QuestionStory) -> str:
    """Who answered what, and when."""
    if told.answer is None:
        return "nobody has answered"
    at = f", {moment(told.answered)}" if told.answered is not None else ""
    text = f": {told.text}" if told.text else ""
    return f"{told.answer}, by {told.who}{at}{text}"


def wait(told: WaitStory) -> str:
    """A wait that was logged."""
    return f"waits {between(told.at, told.until)} {WHY.get(told.why, told.why)}"


def result(told: CallStory) -> str:
    """Where the result comes from."""
    if told.how is None:
        return "it may have happened, and nothing settles it yet" if told.open else "no result yet"
    if told.how == "refused" and told.first is not None:
        return f"refused: call {told.first} had already done the same"
    return HOW[told.how] + (", and what it returned could not be kept exactly" if told.lossy else "")


def spans(told: Audit) -> tuple[float, float]:
    """Seconds that any life worked, and seconds from the first line to the last."""
    worked = sum((life.ended - life.began).total_seconds() for life in told.lives)
    if told.began is None or told.ended is None:
        return worked, 0.0
    return worked, (told.ended - told.began).total_seconds()
