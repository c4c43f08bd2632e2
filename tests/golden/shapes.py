"""The shapes a history can have, each told in a few lines: how runs end, how they stop, what goes wrong on the way.

A shape is a function that tells one history. Where a call was interrupted is in `rungs`; what only a disk can show (a
torn tail, segments, a fork, a salvaged log) is in `places`.
"""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

import replay
from replay import Event
from replay.events import (
    AttemptMarked,
    CallsMade,
    ChildRested,
    FileIntended,
    FileWritten,
    MessageReceived,
    ModelAsked,
    ModelFailed,
    PhaseChanged,
    QuestionAnswered,
    QuestionAsked,
    ReplyRefused,
    ReplySaved,
    RequestRefused,
    ResultRecorded,
    RuleAdded,
    RunStopped,
    StepRecorded,
    WorkspaceAccepted,
    WorkspaceMoved,
)
from replay.messages import CostBound, Reply, ToolCall, Usage
from replay.state import Spent
from replay.values import Digests, FileHash, StopReason
from runner import key
from tests.golden.telling import SUM, Telling, calls, calls_of
from tests.support.story import named

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
            t.go(ReplySaved(reply=summary))
    t.over()


def limits(t: Telling) -> None:
    """A stop by a limit, and new limits that hold."""
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


def refused_conversation(t: Telling) -> None:
    """The model refused what it had written, as it came and rebuilt."""
    look = ToolCall(tool="look", arguments='{"cause": "a"}', provider_id="c1")
    t.reply(whole=Reply(calls=(look,), raw='{"id": "c1"}', dollars=0.25))
    t.ran("saw")
    refused = ModelFailed(
        error="duplicate id", transient=False, refused_conversation=True, error_type="BadRequestError"
    )
    t.go(refused)
    t.go(refused)


def empty_reply(t: Telling) -> None:
    """A reply that is no answer is asked for again; the next one is none either."""
    t.reply(whole=Reply(text="", dollars=0.25))
    t.reply(whole=Reply(text="The answer is", stop="length", dollars=0.25))


def output(t: Telling) -> None:
    """An answer that is none, one that came beside another call, and one that fits."""
    t.reply(whole=Reply(text="two letters", dollars=0.25))
    t.reply(("look", '{"cause": "a"}'), ("final_output", '{"output": []}'))
    t.ran("saw", "2.0")
    t.reply(("final_output", '{"output": ["a", "b"]}'))


def output_invalid(t: Telling) -> None:
    """Twice an answer that is none."""
    t.reply(("final_output", "{}"))
    t.reply(("final_output", "[5]"))


def deadline(t: Telling) -> None:
    """Nothing begins after the deadline; an approval lapses before."""
    t.call("send")
    t.tick(3600)
    t.go()
    t.tick(7200)
    t.call("look")


def decisions(t: Telling) -> None:
    """Other arguments, a text in place of a call, a failure that a person states, a standing rule, a message."""
    t.reply(("send", '{"cause": "a"}'), ("send", '{"cause": "b"}'), ("ring", '{"cause": "c"}'))
    asked = t.state.questions["1.0-approve"]
    new = '{"cause": "z"}'
    t.tick(60)
    t.agents.append("shop")
    t.life += 1
    t.write(
        QuestionAnswered(
            id=asked.id,
            answer="edit",
            who="ann",
            digest=asked.digest,
            arguments=new,
            new_digest=replay.digest(new.encode()),
        ),
        RuleAdded(tool="send", arguments={"note": '""'}, who="ann"),
        MessageReceived(id="message-1", who="bob", text="Hurry."),
    )
    t.say("1.1-approve", "respond", "It was sent.")
    t.resume()
    t.ran("sent")
    t.ended("unknown", call="1.2")
    t.say("1.2-settle-1", "failed", "no line")
    t.resume()
    t.call("send")
    t.ran("sent", "2.0")
    t.over()


def resumes(t: Telling) -> None:
    """The run was resumed as often as it may be."""
    t.call("look")
    t.resume()
    t.resume()
    t.resume()


def stopped(t: Telling) -> None:
    """A person stopped it for good, with a call open."""
    t.call("ring")
    t.ended("unknown")
    t.stop()


def parked(t: Telling) -> None:
    """A person held it back, another one's request came too late, and somebody carried it on."""
    t.call("ring")
    t.write(
        RequestRefused(request="answer-1.0-approve", who="bob", why="it has no question 1.0-approve", post="b" * 16),
        RunStopped(reason="Parked", detail="by ann", who="ann", request="park-1", post="a" * 16),
    )
    t.resume()
    t.stop("Parked", final=False)


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
    t.go(WorkspaceAccepted(by="ann", files=(FileHash(path="a.txt", sha256=FOREIGN),)))
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


def moved(t: Telling) -> None:
    """The workspace was moved while no process worked on the run."""
    t.call("put")
    t.write(FileIntended(call="1.0", path="a.txt", sha256=OLD, before=None))
    t.go(FileWritten(call="1.0", path="a.txt", sha256=OLD), ResultRecorded(call="1.0", how="ran", text="put", n=1))
    t.agents.append("shop")
    t.die(5)
    t.go(WorkspaceMoved(path="/elsewhere", by="ann"))
    t.over()


def children(t: Telling) -> None:
    """Two child runs side by side: one asks a person, one dies with its parent; a wait, a share used up, a failure."""
    t.reply(whole=calls_of("clerk", "Pay a.", "Pay b."))
    asked = QuestionAsked(
        id="1.0-approve",
        kind="approve",
        call="1.0",
        tool="pay",
        arguments=SUM,
        digest=replay.digest(SUM.encode()),
        why="w",
    )
    spent = Spent(input_tokens=100, output_tokens=20, dollars=0.25)
    t.write(ChildRested(call="1.0", phase="paused", spent=spent, turns_used=1, questions=(asked,)))
    t.tick(5)
    t.write(ChildRested(call="1.1", phase="tools", spent=spent, turns_used=1))
    t.resume()
    later = t.now + timedelta(seconds=60)
    t.go(ChildRested(call="1.1", phase="tools", spent=spent, turns_used=1, until=later))
    t.tick(60)
    t.go()
    t.go(
        ChildRested(call="1.1", phase="done", spent=spent, turns_used=2),
        ResultRecorded(call="1.1", how="ran", text="Paid."),
    )
    t.tick(60)
    t.go(ChildRested(call="1.0", phase="tools", spent=spent, turns_used=1))
    used = StopReason(reason="DollarLimit", final=False, detail="all")
    t.go(ChildRested(call="1.0", phase="model", spent=replace(spent, dollars=0.5), turns_used=2, stop=used))
    empty = StopReason(reason="EmptyReply", final=False, detail="twice")
    t.go(ChildRested(call="1.0", phase="model", spent=replace(spent, dollars=0.5), turns_used=3, stop=empty))
    t.over()


def child(t: Telling) -> None:
    """A child run, whose parent went no further."""
    t.call("pay", "c")
    t.stop("ParentClosed", detail="children is done")


def program(t: Telling) -> None:
    """A program with a loop of its own: a step, a call of its own that dies once, a reply that is not its answer."""
    t.write(StepRecorded(name="now", n=0, raw="5"))
    made = ToolCall(tool="look", arguments=SUM, id="a1.0")
    t.write(CallsMade(calls=(made,)), *_marker(t, made, 1))
    t.agents.append("shop")
    t.die(5)
    t.write(*_marker(t, made, 2))
    t.write(ResultRecorded(call="a1.0", how="ran", text="seen", n=2, raw='{"seen": 1}'))
    digests = Digests(instructions="i", tools="t", messages="m", parameters="p")
    ask = ModelAsked(purpose="turn", n=1, upto=0, bound=CostBound(dollars=0.5), digests=digests)
    t.write(ask)
    t.write(ReplySaved(reply=named(Reply(text="No answer.", dollars=0.25), 1)))
    t.write(ReplyRefused(why="The program asked again."), ask)
    t.write(ReplySaved(reply=named(Reply(text="An answer.", dollars=0.25), 2)))
    t.write(PhaseChanged(phase="done", answer="Its own answer."))


def _marker(t: Telling, call: ToolCall, n: int) -> list[Event]:
    arguments = call.arguments if n == 1 else None
    return [AttemptMarked(call=call.id, n=n, key=key(t.state.uid, call.id), effect="reads", arguments=arguments)]


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
    "stopped-conversation": (refused_conversation, "shop"),
    "stopped-empty": (empty_reply, "shop"),
    "output": (output, "typed"),
    "stopped-output": (output_invalid, "typed"),
    "stopped-deadline": (deadline, "hurried"),
    "decisions": (decisions, "shop"),
    "stopped-resumes": (resumes, "few resumes"),
    "stopped-by-person": (stopped, "shop"),
    "stopped-parked": (parked, "shop"),
    "files": (files, "shop"),
    "workspace-moved": (moved, "shop"),
    "children": (children, "office"),
    "child": (child, "clerk"),
    "program": (program, "shop"),
    "stopped-workspace": (changed, "shop"),
}
"""Each history's teller, and the agent of its first life."""
