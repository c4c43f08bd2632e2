"""Runs that were never run: stories written to disk as a log, with every time and every process made up.

A story in memory (`tests.support.story`) says what happened; here it becomes a run that commands can read, the same
bytes wherever and whenever it is written.
"""

from pathlib import Path

from msgspec.structs import replace

import eventlog
import runner
from replay.events import (
    AttemptMarked,
    FileIntended,
    FileWritten,
    LimitsChanged,
    LookupAnswered,
    ModelFailed,
    ReplySaved,
    ResultRecorded,
    RunStopped,
    WorkspaceAccepted,
)
from replay.messages import Reply, ToolCall, Usage
from replay.values import FileHash, Limits
from tests.support import tools
from tests.support.story import Story, named

RUN = "r"
HASH = "ab" * 32


def shelf(story: Story, runs: Path, *, close: bool = True, disk: eventlog.Disk = eventlog.DISK) -> str:
    """Write a story's lines as run `r`; closed, or left as by a process that died. A new life opens the log anew."""
    first, *others = story.lines
    log = eventlog.Directory(runs, disk=disk).create(RUN, at=first.at, events=[bytes(raw) for raw in first.events])
    life = first.life
    for line in others:
        if line.life != life:
            log.abandon()
            log, life = eventlog.Directory(runs, disk=disk).open(RUN), line.life
        log.append(line.at, [bytes(raw) for raw in line.events])
    if close:
        log.close()
    else:
        log.abandon()
    return RUN


def plain(arguments: str = '{"cause": "a"}', text: str = "ok", says: str = "", tool: str = "look") -> Story:
    """One call that ran, whatever its arguments, and the answer."""
    story = Story(tools.agent())
    story.go()
    reply = Reply(calls=(ToolCall(tool=tool, arguments=arguments),), text=says, usage=Usage(input_tokens=9))
    marked = AttemptMarked(call="1.0", n=1, key=runner.key(RUN, "1.0"), effect="reads")
    story.write(ReplySaved(reply=named(reply, 1)), marked)
    story.tick(2)
    story.ran(text)
    story.reply(whole=Reply(text=says or "Done."))
    return story


def eventful() -> Story:
    """Nearly everything that can happen to a run, in nine turns and seven lives."""
    story = Story(tools.agent(limits=Limits(turns=20, dollars=5)))
    story.reply(("look", '{"cause": "a"}'))
    story.tick(0.25)
    story.ran("looked")
    story.die(after=40)  # the ask for the second turn is lost
    story.go()
    story.go(ModelFailed(error="overloaded", transient=True, billed=True))
    story.tick(5)
    story.reply(("push", '{"cause": "b"}'))
    story.die(after=600)  # within its key's time: harmless
    story.go()
    story.ran("pushed", call="2.0")
    story.reply(("patch", '{"cause": "c"}'))
    story.write(FileIntended(call="3.0", path="c.txt", sha256=HASH, before=None))
    story.write(FileWritten(call="3.0", path="c.txt", sha256=HASH))
    story.die(after=30, agent=story.agent.replace(instructions="Other words."))
    story.go()
    story.go(ResultRecorded(call="3.0", how="found", text="it is patched"))
    story.reply(("patch", '{"cause": "d"}'))
    story.ended("unknown", call="4.0")
    story.go()
    story.go(LookupAnswered(call="4.0", said="unsure", why="two match"))
    if story.state.waiting:
        story.tick(3600)
        story.answer("4.0-settle-1", "done", "it was patched")
    story.go()
    story.reply(("pay", '{"cause": "b"}'), ("pay", '{"cause": "b"}'))
    story.answer("5.0-approve", "approve")
    story.answer("5.1-approve", "refuse", "once is enough")
    story.go()
    story.ran("paid", call="5.0")
    story.write(WorkspaceAccepted(by="ann", files=(FileHash(path="c.txt", sha256=None),)))
    story.die(clock_back=True)
    story.write(LimitsChanged(limits=replace(story.state.limits, dollars=9.0)))
    story.write(RunStopped(reason="Interrupted", detail="SIGTERM"))
    story.die(after=86_400)
    story.reply(whole=Reply(text="All is done.", usage=Usage(input_tokens=100, output_tokens=20), dollars=0.25))
    return story


def long(events: int, payload: str = "x") -> Story:
    """Turns of one call each until there are so many events."""
    story = Story(tools.agent(limits=Limits()))
    count = 0
    while count < events:
        story.reply(("look", f'{{"cause": "{payload}"}}'))
        story.tick(1)
        story.ran(payload, call=f"{story.state.turns}.0")
        story.tick(1)
        count += 4
    return story
