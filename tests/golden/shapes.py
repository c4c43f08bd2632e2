"""The shapes a history can have, each told in a few lines: how runs end, how they stop, what goes wrong on the way.

A shape is a function that tells one history. Where a call was interrupted is in `rungs`; what only a disk can show (a
torn tail, segments, a fork, a salvaged log) is in `places`.
"""

from __future__ import annotations

from msgspec.structs import replace

import replay
from replay import FileIntended, FileWritten, ModelFailed, Reply, ResultRecorded, ToolCall, Usage
from tests.golden.telling import Telling, calls

OLD, NEW, FOREIGN = "1" * 64, "2" * 64, "3" * 64


def finished(t: Telling) -> None:
    """Reads side by side, an effect, an answer."""
    t.reply(whole=replace(calls(("look", "a"), ("look", "b")), text="I look."))
    t.go(*(ResultRecorded(call=f"1.{i}", how="ran", text=f"saw {i}", n=1) for i in (0, 1)))
    t.call("pay")
    t.ran("paid", call="2.0")
    t.over()


def interrupted(t: Telling) -> None:
    """A signal parks the run with a call in flight."""
    t.call("send", "b")
    t.say("1.0-approve", "approve")
    t.resume()
    t.stop("Interrupted", final=False, detail="a signal asked it to park")


def paused(t: Telling) -> None:
    """Two approvals wait; one is answered."""
    t.reply(whole=calls(("send", "a"), ("pay", "b")))
    t.say("1.1-approve", "approve")


def approvals(t: Telling) -> None:
    """A yes, a no with its reason, a predicate that raises, and calls that need none."""
    t.reply(whole=calls(("send", "a"), ("pay", "b"), ("pay", "c"), ("pay", "a")))
    t.say("1.0-approve", "refuse", "not today")
    t.say("1.1-approve", "approve")
    t.say("1.2-approve", "approve")
    t.resume()
    for n in (1, 2, 3):
        t.ran(f"paid {n}", call=f"1.{n}")
    t.over()


def policy(t: Telling) -> None:
    """Approvals are off: the policy says yes."""
    t.call("send")
    t.ran("sent")
    t.over()


def repeated(t: Telling) -> None:
    """An intent that happened is refused, with whatever other words it comes."""
    t.call("pay", note="first")
    t.ran("paid")
    t.call("pay", note="again")
    t.over()


def invalid(t: Telling) -> None:
    """Arguments that can't be used, tools that are not there, a reply that was cut off."""
    wanted = [("look", "{"), ("look", "[]"), ("look", '{"cause": "a", "cause": "b"}'), ("look", '{"cause": 7}')]
    wanted += [("nothing", "{}"), ("look", '{"cause": "\\ud800"}'), ("put", '{"cause": "a", "more": 1}')]
    t.reply(*wanted)
    t.ran("saw", call="1.5")
    t.reply(whole=Reply(calls=(ToolCall(tool="look", arguments='{"cau'),), stop="length", dollars=0.25))
    t.over()


def odd_text(t: Telling) -> None:
    """Ends of lines that are none, what JSON escapes, a result that could not be kept as it came."""
    odd = '\u2028\u2029\u0085\r\x00\x1b[31m\u202e\U0001f600e\u0301 \\ " </script>'
    t.reply(("look", '{"cause": "' + "\u2028\U0001f600" + '"}'))
    t.go(ResultRecorded(call="1.0", how="ran", text=odd, n=1, lossy=True))
    t.reply(whole=Reply(text=odd, raw='{"content":"\\u2028"}', model="m-1", lossy=True, dollars=0.25))


def asks(t: Telling) -> None:
    """Lost asks, failed ones, billed or not, with waits between them; a reply without a price; a provider's pause."""
    t.go()
    t.resume()
    t.go(ModelFailed(error="busy", transient=True, retry_after=90))
    t.tick(90)
    t.go()
    t.go(ModelFailed(error="the stream broke", transient=True, billed=True))
    t.tick(60)
    t.go()
    t.reply(
        whole=Reply(text="I am not done.", stop="pause", usage=Usage(input_tokens=9, cache_read_tokens=8), dollars=None)
    )
    t.over()


def summarised(t: Telling) -> None:
    """The context policy asks for a summary, which then stands for what it covers; one of them is lost."""
    long = Usage(input_tokens=500, output_tokens=20)
    for cause in ("a", "b", "c"):
        t.reply(whole=replace(calls(("look", cause)), usage=long if cause == "b" else Usage(input_tokens=100)))
        t.ran(f"saw {cause}", call=f"{t.state.turns}.0")
        if cause == "b":
            t.resume()
            summary = Reply(text="A and b were seen.", usage=long, dollars=0.25)
            t.go(replay.ReplySaved(reply=summary))
    t.over()


def limits(t: Telling) -> None:
    """A stop by a limit, and today's limits that win."""
    t.call("look")
    t.ran("saw")
    t.resume("more turns")
    t.over()


def turns(t: Telling) -> None:
    """The run used its turns."""
    t.call("look")
    t.ran("saw")


def tokens(t: Telling) -> None:
    """The run used its tokens, lost ones included."""
    t.go()
    t.resume()


def dollars(t: Telling) -> None:
    """The run used its dollars."""
    t.reply(whole=replace(calls(("look", "a")), dollars=0.5))
    t.ran("saw")


def unavailable(t: Telling) -> None:
    """Six asks in a row failed."""
    t.go()
    for _ in range(6):
        t.go(ModelFailed(error="busy", transient=True))
        t.tick(60)
        t.go()


def refused_model(t: Telling) -> None:
    """An ask failed for good."""
    t.go()
    t.go(ModelFailed(error="no such model", transient=False))


def resumes(t: Telling) -> None:
    """The run was resumed as often as it may be."""
    t.call("look")
    t.resume()
    t.resume()


def stopped(t: Telling) -> None:
    """A person stopped it for good, with a call open."""
    t.call("ring")
    t.ended("unknown")
    t.stop()


def files(t: Telling) -> None:
    """Files written, deleted, changed from outside and accepted; a write that a death cut off."""
    t.call("put")
    t.write(FileIntended(call="1.0", path="a.txt", sha256=OLD, before=None))
    t.write(FileIntended(call="1.0", path="d/b.txt", sha256=None, before=NEW))
    t.go(
        FileWritten(call="1.0", path="a.txt", sha256=OLD),
        FileWritten(call="1.0", path="d/b.txt", sha256=None),
        ResultRecorded(call="1.0", how="ran", text="put", n=1),
    )
    t.call("put", "b")
    t.write(FileIntended(call="2.0", path="a.txt", sha256=NEW, before=OLD))
    t.agents.append("shop")
    t.die(5)
    t.go(replay.WorkspaceAccepted(by="ann", files=(replay.FileHash(path="a.txt", sha256=FOREIGN),)))
    t.ran("put", call="2.0")
    t.over()


def changed(t: Telling) -> None:
    """A foreign edit stopped the resume."""
    t.call("put")
    t.write(FileIntended(call="1.0", path="a.txt", sha256=OLD, before=None))
    t.go(FileWritten(call="1.0", path="a.txt", sha256=OLD), ResultRecorded(call="1.0", how="ran", text="put", n=1))
    t.agents.append("shop")
    t.die(5)
    t.stop("WorkspaceChanged", final=False, detail="a.txt (changed)")


SHAPES = {
    "finished": (finished, "shop"),
    "interrupted": (interrupted, "shop"),
    "paused": (paused, "shop"),
    "approvals": (approvals, "shop"),
    "approve-off": (policy, "off"),
    "intent-repeated": (repeated, "shop"),
    "invalid-calls": (invalid, "shop"),
    "odd-text": (odd_text, "shop"),
    "asks": (asks, "shop"),
    "summary": (summarised, "brief"),
    "limits-changed": (limits, "few turns"),
    "stopped-turns": (turns, "few turns"),
    "stopped-tokens": (tokens, "few tokens"),
    "stopped-dollars": (dollars, "few dollars"),
    "stopped-model": (unavailable, "shop"),
    "stopped-model-for-good": (refused_model, "shop"),
    "stopped-resumes": (resumes, "few resumes"),
    "stopped-by-person": (stopped, "shop"),
    "files": (files, "shop"),
    "stopped-workspace": (changed, "shop"),
}
"""Each history's teller, and the agent of its first life."""
