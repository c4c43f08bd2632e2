"""Make the golden histories of a version: `python -m tests.golden.make DIRECTORY [--batch]`.

Every shape is told anew by the current code and written under DIRECTORY: `histories/`, a directory of runs, and
`facts.json`, what each of them comes to. The same code makes the same bytes. With `--batch` the triage job's batch is
run as well, which takes a while, and its log joins them with this machine's names taken out. A version that was
released is never made again: the next one gets a directory of its own, with its agents beside it.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from msgspec.structs import replace

import eventlog
import replay
import runner
from replay.events import ModelAsked, RunStarted
from runner import triage
from tests.golden.facts import facts
from tests.golden.telling import Fixed
from tests.golden.writing import make


def batch(into: Path) -> dict[str, Any]:
    """Run the triage job's batch and put its log beside the others; what its agent declares, for `agents.batch`."""
    with tempfile.TemporaryDirectory() as scratch:
        job = triage.Job.of("batch", Path(scratch, "runs"), approve="off")
        agent, place = job.agent(), job.world.workspace
        with job.world.held():
            job.world.lay(job.task)
            asyncio.run(runner.start(agent, job.task.name, runs=job.runs, run="batch", workspace=place))
        lines = eventlog.store(job.runs).read("batch").lines
    disk = Fixed()
    opening, *rest = (line for line in lines if line.events)
    log = eventlog.Directory(into, disk=disk).create("batch", at=opening.at, events=_neutral(opening))
    for line in rest:
        log.append(line.at, _neutral(line))
    log.close()
    context: Any = agent.context
    return {
        "instructions": agent.instructions,
        "context": {"tokens": context.tokens, "keep": context.keep, "instructions": context.instructions},
        "limits": {"turns": agent.limits.turns, "dollars": agent.limits.dollars},
        "tools": [_declared(tool) for tool in agent.tools],
        "bounds": dict(_bounds(eventlog.store(into).read("batch").lines)),
    }


def _neutral(line: eventlog.Line) -> list[bytes]:
    """A line's events without the names of the machine they were made on."""
    events = [replay.decode(raw) for raw in line.events]
    return [
        replay.encode(replace(e, workspace="/workspace", host="h", pid=1) if isinstance(e, RunStarted) else e)
        for e in events
    ]


def _declared(tool: Any) -> dict[str, Any]:
    names = ("name", "effect", "key_ttl", "once_per", "approval", "attempts", "timeout", "schema", "description")
    found = {name: getattr(tool, name) for name in names}
    return {**found, "visible_within": tool.visible_within if tool.find is not None else None}


def _bounds(lines: list[eventlog.Line]) -> list[tuple[str, dict[str, Any]]]:
    state, found = replay.NEW, []
    for line in lines:
        for raw in line.events:
            event = replay.decode(raw)
            if isinstance(event, ModelAsked):
                bound = event.bound
                key = f"{state.turns + 1} {event.purpose} {event.n}"
                found.append((key, {name: getattr(bound, name) for name in bound.__struct_fields__}))
            state = replay.step(state, event, line.at)
    return found


def main(directory: str, *options: str) -> None:
    """Make a version's histories and facts."""
    into = Path(directory)
    runs = into / "histories"
    for old in runs.glob("*"):
        if old.name != "batch" or "--batch" in options:
            shutil.rmtree(old)
    lives = make(runs)
    if "--batch" in options:
        declared = batch(runs)
        (into / "batch.json").write_text(json.dumps(declared, indent=1) + "\n", encoding="utf-8")
    if (runs / "batch").is_dir():
        (runs / "batch" / "lock").unlink(missing_ok=True)
        lives["batch"] = ["batch"]
    found = {run: facts(runs, run, agents) for run, agents in lives.items()}
    text = json.dumps(found, indent=1, ensure_ascii=True)
    (into / "facts.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
