"""Writes the tasks' recordings afresh, with the replies they hold; run as `python tests/triage/rerecord.py`.

The digests in a recording name the instructions, the tools and the conversation. When one of these is changed on
purpose the recording no longer answers it, and this runs the jobs again with the same replies to write down what they
answer now.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # so that it runs as a script, installed or not

import runner
from runner import testing, triage


def recorder(task: str, into: Path) -> testing.RecordingModel:
    """A model that gives the recorded replies of `task` and writes its recording afresh, to `into`."""
    into.write_bytes(b"")
    return testing.RecordingModel(testing.RecordedModel(triage.Task(task).recording, strict=False), into)


def main() -> None:
    """Every task there is, each file replaced only when its run has finished."""
    for task in triage.tasks():
        recording = triage.Task(task).recording
        with tempfile.TemporaryDirectory() as scratch:
            fresh = Path(scratch, "recording.jsonl")
            job = triage.Job.of(task, f"{scratch}/runs", approve="off")
            result = asyncio.run(job.run(model=recorder(task, fresh)))
            if not isinstance(result, runner.Finished):
                sys.exit(f"{result.run} did not finish")
            recording.write_bytes(fresh.read_bytes())


if __name__ == "__main__":
    main()
