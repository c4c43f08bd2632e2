"""Lives, asks, calls, attempts and questions of a log in short sentences, which audit and report share.

Nothing here shortens or escapes: whoever prints it does.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from runner._cli._render import event_text, question_text

if TYPE_CHECKING:  # a list of runs waits for nothing that only a story needs
    from replay import Audit
    from replay.stories import AskStory, AttemptStory, CallStory, LifeStory, LookupStory, QuestionStory, WaitStory

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
    "in doubt": "may have acted: its process died in it",
    "in flight": "in flight, or its process died in it",
}
"""What an attempt came to."""

HOW = {
    "ran": "it ran",
    "found": "the service was asked, and it had happened",
    "stated": "a person said what it came to",
    "refused": "it was refused",
    "failed": "it failed: every attempt certainly did nothing",
    "invalid": "it could not be run as it was called",
    "responded": "a person answered in its place",
    "output": "it was the answer",
    "no_output": "it was to be the answer, and is none",
}
"""Where a call's result comes from: the rung of the ladder that settled it, for one that was in doubt."""

WHY = {
    "backoff": "before the next attempt",
    "visible": "until nothing can land any more",
    "lookup": "before asking the service again",
    "model": "before asking the model again",
    "child": "as its child run does",
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


def length(time: timedelta) -> str:
    """A stretch of time for a list, in one unit, as options take it."""
    seconds = max(int(time.total_seconds()), 0)
    for unit, size in (("d", DAY), ("h", HOUR), ("m", MINUTE)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def ago(at: datetime) -> str:
    """How long ago something was."""
    return f"{length(datetime.now(UTC) - at)} ago"


def between(began: datetime, ended: datetime | None) -> str:
    """How long it took; "" while nobody knows."""
    return "" if ended is None else took((ended - began).total_seconds())


def moment(at: datetime) -> str:
    """A time, to the second, in UTC."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def lines(first: int, last: int | None = None) -> str:
    """Which lines say so."""
    return f"line {first}" if last is None or last == first else f"lines {first} to {last}"


def life(story: LifeStory) -> str:
    """Who opened the run, and why."""
    who = f"process {story.pid} on {story.host}" if story.pid is not None else "a person"
    counted = "counted" if story.counted else "not counted"
    kind = {
        "start": f"started by {who}",
        "resume": f"resumed by {who}, {counted}",
        "fork": f"forked by {who}",
        "answer": "a person said something from outside",
    }[story.kind]
    return kind + (", and found the clock set back" if story.clock_back else "")


def end(story: LifeStory, *, last: bool) -> str:
    """How a life ended; a finding says the same with its details."""
    if story.end == "stopped" and story.stopped is not None:
        return event_text.stopped(story.stopped)
    if story.kind in ("answer", "fork") and story.end in ("unsaid", "paused"):
        return "ended with that"
    if story.end == "unsaid":
        return "still running, or died" if last else "died"
    return {"done": "finished", "paused": event_text.PAUSED}[story.end]


def gap(story: LifeStory, before: LifeStory) -> str:
    """What lies between two lives."""
    between_them = f"{took(story.gap or 0)} nobody wrote"
    if story.kind == "fork":
        return f"{between_them}; after this line another run begins"
    if before.kind in ("answer", "fork") and before.end != "stopped":
        return between_them
    return f"{between_them}; life {before.life} {end(before, last=False)}"


def ask(story: AskStory) -> str:
    """One ask of the model, and what it cost."""
    again = f", ask {story.n} in a row" if story.n > 1 else ""
    time = between(story.at, story.ended) if story.came in ("replied", "failed") else ""
    words = [f"{time}{again}".removeprefix(", ")]
    if story.usage is not None:
        used = story.usage
        words.append(f"{used.input_tokens:,} + {used.output_tokens:,} tokens")
        if used.cache_read_tokens or used.cache_write_tokens:
            words.append(f"cache {used.cache_read_tokens:,} read, {used.cache_write_tokens:,} written")
        words.append(event_text.money(story.dollars))
    if story.came in ("asked", "lost") or story.billed:
        words.append(f"{came(story)}, counts at most {bound(story)}")
    elif story.came == "failed":
        words.append(came(story))
    return ", ".join(word for word in words if word)


def came(story: AskStory) -> str:
    """What an ask came to."""
    return {
        "replied": "replied",
        "failed": f"failed: {story.error}",
        "lost": "the reply never came",
        "asked": "no reply yet",
    }[story.came]


def bound(story: AskStory) -> str:
    """The most an ask could cost."""
    most = story.bound
    dollars = "" if most.dollars is None else f", {event_text.money(most.dollars)}"
    return f"{most.input_tokens:,} + {most.output_tokens:,} tokens{dollars}"


def attempt(story: AttemptStory) -> str:
    """One try: its effect, how long it took, what it did, and why it was made."""
    time = between(story.at, story.ended) if story.did in ("ran", "nothing", "unknown") else ""
    why = "" if story.rung == "first" else f" ({RUNG[story.rung]})"
    error = f": {story.error}" if story.error else ""
    return ", ".join(filter(None, (story.effect, time, DID[story.did]))) + error + why


def lookup(story: LookupStory) -> str:
    """One question to the service, and what it said."""
    said = {
        None: "no answer",
        "found": "found",
        "missing": "missing" if story.believes else "missing, too early to be believed",
        "unsure": "unsure",
    }[story.said]
    error = f": {story.error}" if story.error else ""
    return f"{said}{error}"


def question(story: QuestionStory) -> str:
    """One question to a person, with who answered what and when."""
    return f"{asked(story)} {answered(story)}"


def asked(story: QuestionStory) -> str:
    """What a person was asked, and why."""
    what = question_text.prompt(story)
    return f"{what} ({story.why})" if story.why else what


def answered(story: QuestionStory) -> str:
    """Who answered what, and when."""
    if story.answer is None:
        return "nobody has answered"
    at = f", {moment(story.ended)}" if story.ended is not None else ""
    text = f": {story.text}" if story.text else ""
    return f"{story.answer}, by {story.who}{at}{text}"


def wait(story: WaitStory) -> str:
    """A wait that was logged."""
    return f"waits {between(story.at, story.until)} {WHY.get(story.why, story.why)}"


def result(story: CallStory) -> str:
    """Where the result comes from."""
    if story.how is None:
        return "it may have happened, and nothing settles it yet" if story.in_doubt else "no result yet"
    if story.how == "refused" and story.first is not None:
        return f"refused: call {story.first} had already done the same"
    return HOW[story.how] + (", and what it returned could not be kept exactly" if story.lossy else "")


def spans(story: Audit) -> tuple[float, float]:
    """Seconds that any life worked, and seconds from the first line to the last."""
    worked = sum((life.ended - life.began).total_seconds() for life in story.lives)
    if story.began is None or story.ended is None:
        return worked, 0.0
    return worked, (story.ended - story.began).total_seconds()
