"""Each rung of the ladder, and each way in which a call can end without one."""

from __future__ import annotations

from replay.events import LookupAnswered, ResultRecorded
from tests.golden.telling import Telling


def _approved(t: Telling, tool: str) -> None:
    """A call of a tool that needs a yes, in flight."""
    t.call(tool)
    t.say("1.0-approve", "approve")
    t.resume()


def reads_again(t: Telling) -> None:
    """A read that a death cut off simply runs again; one that raised has failed."""
    t.call("look")
    t.resume()
    t.ran("saw")
    t.call("look", "b")
    t.ended("nothing", call="2.0")
    t.over()


def idempotent_again(t: Telling) -> None:
    """Deaths do not count, ends of its own do, with growing waits; then a person."""
    t.call("put")
    t.resume()
    for _ in range(3):
        t.ended("unknown", after=1)
        t.tick(60)
        t.go()
    t.say("1.0-settle-1", "done", "it is put")
    t.resume()
    t.over()


def keyed_again(t: Telling) -> None:
    """The service still remembers the key."""
    t.call("push")
    t.ended("unknown", retry_after=90)
    t.tick(90)
    t.go()
    t.ran("pushed")
    t.over()


def key_expired(t: Telling) -> None:
    """Too late for the key: the service is asked, and has it."""
    t.call("pay")
    t.resume(after=4000)
    t.go(ResultRecorded(call="1.0", how="found", text="paid"))
    t.over()


def clock_back(t: Telling) -> None:
    """A clock set back makes every key one that may be forgotten."""
    t.call("push")
    t.resume(back=True)
    t.say("1.0-settle-1", "rerun")
    t.resume()
    t.ran("pushed")
    t.over()


def missing(t: Telling) -> None:
    """Asked too early, a `Missing` is not believed; asked again later it is, and the call runs again."""
    t.call("patch")
    t.resume()
    t.go(LookupAnswered(call="1.0", said="missing"))
    t.tick(20)
    t.go()
    t.go(LookupAnswered(call="1.0", said="missing"))
    t.ran("patched")
    t.over()


def unsure(t: Telling) -> None:
    """The service can't say: a person does."""
    t.call("patch")
    t.resume()
    t.go(LookupAnswered(call="1.0", said="unsure", why="two fit"))
    t.say("1.0-settle-1", "done", "it was the second")
    t.resume()
    t.over()


def lookup_raises(t: Telling) -> None:
    """A lookup that raises is asked again twice, then a person; their `rerun` goes beyond the cap."""
    t.call("patch")
    t.resume()
    for _ in range(3):
        t.go(LookupAnswered(call="1.0", said="unsure", error="down"))
        t.tick(60)
        t.go()
    t.say("1.0-settle-1", "rerun", "go ahead")
    t.resume()
    t.ended("unknown")
    t.go(LookupAnswered(call="1.0", said="unsure"))


def person(t: Telling) -> None:
    """Once, without a lookup."""
    _approved(t, "send")
    t.resume()
    t.say("1.0-settle-1", "done", "sent")
    t.resume()
    t.over()


def needs_person(t: Telling) -> None:
    """The service asks something in the middle of a call; the answer reaches the next attempt."""
    t.call("push")
    t.ended("unknown", asks=True)
    t.say("1.0-settle-1", "rerun", '{"agreed": true}')
    t.resume()
    t.ran("pushed")
    t.over()


def failed(t: Telling) -> None:
    """Attempts that certainly did nothing: repeated where that is worth it, up to the cap."""
    t.call("ring")
    for _ in range(3):
        t.ended("nothing", retry_after=30, after=1)
        t.tick(60)
        t.go()
    t.call("ring", "b")
    t.ended("nothing", call="2.0")
    t.over()


def deployed(t: Telling) -> None:
    """The current code declares another effect, has no such tool, or no lookup: a person decides."""
    t.call("ring")
    t.resume("deployed")
    t.say("1.0-settle-1", "done", "it rang")
    t.resume()
    t.call("put")
    t.over()


def open_still(t: Telling) -> None:
    """Where a process died in a call, and nobody has come back."""
    t.call("patch")


RUNGS = {
    "rung-reads": (reads_again, "shop"),
    "rung-idempotent": (idempotent_again, "shop"),
    "rung-keyed": (keyed_again, "shop"),
    "rung-key-expired": (key_expired, "shop"),
    "rung-clock-back": (clock_back, "shop"),
    "rung-missing": (missing, "shop"),
    "rung-unsure": (unsure, "shop"),
    "rung-lookup-raises": (lookup_raises, "shop"),
    "rung-person": (person, "shop"),
    "rung-needs-person": (needs_person, "shop"),
    "rung-failed": (failed, "shop"),
    "rung-deployed": (deployed, "shop"),
    "rung-open": (open_still, "shop"),
}
"""Each history's teller, and the agent of its first life."""
