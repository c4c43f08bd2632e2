"""Writes a task's recording afresh, with the replies it holds; run as `python tests/triage/rerecord.py`.

The digests in a recording name the instructions, the tools and the conversation. When one of these is changed on
purpose the recording no longer answers it, and this runs the job again with the same replies to write down what they
answer now.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # so that it runs as a script, installed or not

import runner
from runner import triage


async def rerecord(task: str, into: Path) -> None:
    """Run the job of `task` with its recorded replies and write the recording to `into`."""
    replies = runner.Recorded(triage.Task(task).recording).replies
    model = runner.Recorder(runner.ScriptedModel(list(replies.values())), into)
    with tempfile.TemporaryDirectory() as scratch:
        job = triage.Job.of(task, f"{scratch}/runs", approve="off")
        result = await job.run(model=model)
        if not isinstance(result, runner.Finished):
            sys.exit(f"{result.run} did not finish")


def main() -> None:
    """Every task there is, each file replaced only when its run has finished."""
    for task in triage.tasks():
        recording = triage.Task(task).recording
        with tempfile.TemporaryDirectory() as scratch:
            fresh = Path(scratch, "recording.jsonl")
            fresh.touch()
            asyncio.run(rerecord(task, fresh))
            recording.write_bytes(fresh.read_bytes())


if __name__ == "__main__":
    main()
