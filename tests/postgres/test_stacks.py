"""A worker of the torture that does not end says where it stands: each thread, and each task down to what it awaits."""

from __future__ import annotations

import subprocess
import sys
import tempfile

from tests.support import ROOT, stacks

STUCK = """
import asyncio, sys, threading
from tests.support import stacks

def waits_in_a_thread(): threading.Event().wait()
async def waits_for_nothing(): await asyncio.get_running_loop().create_future()
async def waits(): await waits_for_nothing()

async def main():
    stacks.tell_when_asked()
    threading.Thread(target=waits_in_a_thread, daemon=True).start()
    waiting = asyncio.create_task(waits())
    await asyncio.sleep(0)
    print("ready", flush=True)
    await waiting

asyncio.run(main())
"""


def test_a_process_that_is_asked_tells_where_its_threads_and_its_tasks_wait() -> None:
    """Without it a worker that goes on after SIGTERM leaves no more than the seconds that somebody waited for it."""
    with tempfile.TemporaryFile("a+") as errors:
        command = [sys.executable, "-c", STUCK]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            said = [stacks.asked(process, errors), stacks.asked(process, errors)][-1]
            process.kill()
    assert said.count("in waits_in_a_thread") == 2, said  # whoever asks twice is told twice
    assert said.count("in waits\n") == said.count("in waits_for_nothing\n") == 2, said
