"""SIGKILLs at random moments, at the agent, at its tracker or at both, while the batch is carried on again and again.

A blow falls at a moment of the run's own progress, counted in what was saved for good (replies and results), because
seconds mean something else on every machine; and then a few milliseconds later, so that it falls anywhere between two
saves. Which moments, whom, and how much later come from a seed. Each blow falls on an agent that was stopped first, so
that it can be looked at what it would cut off.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

import eventlog
import replay
import runner
from runner import triage
from runner.triage._tracker_store import comments, issues
from tests.triage.lives import Lives
from tests.triage.worlds import BATCH, ROOT, tracker_pid

OUTCOMES = (b'"type":"reply_saved"', b'"type":"result_recorded"')
MOST = 130
"""No blow is due later than at this outcome: the last ones of a run pass so fast that it would come too late."""


class Carried(Protocol):
    """A way to carry the run on in a process of its own."""

    def start(self) -> int:
        """The process id of a new life."""
        ...

    def over(self) -> bool:
        """Whether it has ended."""
        ...

    def wait(self) -> int:
        """Its exit status, once it has ended."""
        ...


class Command:
    """By the command."""

    def __init__(self, runs: Path) -> None:
        self._runs = runs
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> int:
        """See `Carried`."""
        words = ["triage", "--task", BATCH, "--runs", str(self._runs), "--approve", "off", "--max-resumes", "100"]
        with (self._runs.parent / "stderr").open("ab") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "runner._cli", *words], cwd=ROOT, stdout=said, stderr=said
            )
        return self._process.pid

    def over(self) -> bool:
        """See `Carried`."""
        return self._process is not None and self._process.poll() is not None

    def wait(self) -> int:
        """See `Carried`."""
        assert self._process is not None
        return self._process.wait()


class Forked:
    """By a fork of a process that has imported everything."""

    def __init__(self, lives: Lives, runs: Path) -> None:
        self._lives = lives
        self._runs = runs

    def start(self) -> int:
        """See `Carried`."""
        return self._lives.start(BATCH, self._runs, approve="off", resumes=100)

    def over(self) -> bool:
        """See `Carried`."""
        return self._lives.over()

    def wait(self) -> int:
        """See `Carried`."""
        return self._lives.wait().returncode


class Blow(NamedTuple):
    """After so many outcomes of the run, and so many seconds, this falls on these."""

    after: int
    later: float
    whom: str


def blows(count: int, seed: int) -> list[Blow]:
    """A storm of so many SIGKILLs."""
    chance = random.Random(seed)  # noqa: S311 (a storm that can be repeated)
    moments = sorted(chance.sample(range(MOST), count))
    whom = [chance.choice(("agent", "agent", "tracker", "both")) for _ in moments]
    return [Blow(after, chance.random() * 0.03, who) for after, who in zip(moments, whom, strict=True)]


class Storm:
    """The batch at `runs`, carried on under blows.

    `spares_writes`: no blow falls while an issue or a comment is being filed, or is open. `struck` are the SIGKILLs
    that fell, by whom they fell on; `questions` what a person was asked on the way, who tells the truth, since the
    tracker's file says it.
    """

    def __init__(self, runs: Path, carried: Carried, *, spares_writes: bool = False) -> None:
        self.runs = runs
        self.world = triage.Job.of(BATCH, runs).world
        self.struck = {"agent": 0, "tracker": 0}
        self.questions: list[replay.Question] = []
        self._carried = carried
        self._spares_writes = spares_writes
        self._alive: int | None = None

    def rage(self, storm: list[Blow]) -> str:
        """Let the storm pass, then let the run finish; its id."""
        for blow in storm:
            while not self._fell(blow):
                pass
        while not self._finished():
            pass
        (run,) = eventlog.runs(self.runs)
        return run

    def _fell(self, blow: Blow) -> bool:
        """Bring the run to where the blow is due and let it fall; False when it could not, and must be tried again."""
        agent = self._life()
        deadline = time.monotonic() + 120
        while True:
            assert time.monotonic() < deadline, "the run does not get on"
            if self._carried.over():
                assert not self._finished(), "the run finished before the storm was over"
                return False
            if self._outcomes() >= blow.after:
                break
            time.sleep(0.002)
        time.sleep(blow.later)
        return self._strike(blow, agent)

    def _strike(self, blow: Blow, agent: int) -> bool:
        with suppress(ProcessLookupError):
            os.kill(agent, signal.SIGSTOP)
        if self._spares_writes and self._writes():
            os.kill(agent, signal.SIGCONT)
            time.sleep(0.01)
            return False
        tracker = tracker_pid(self.world.path)
        if blow.whom != "agent" and tracker is not None:
            with suppress(ProcessLookupError):
                os.kill(tracker, signal.SIGKILL)
                self.struck["tracker"] += 1
        if blow.whom == "tracker" and tracker is not None:
            with suppress(ProcessLookupError):
                os.kill(agent, signal.SIGCONT)
            return True
        with suppress(ProcessLookupError):
            os.kill(agent, signal.SIGKILL)
        self._alive = None
        died = self._carried.wait() == -signal.SIGKILL
        self.struck["agent"] += died
        return died

    def _writes(self) -> bool:
        """Whether the tracker was, or may have been, asked to write something that the log does not settle."""
        (run,) = eventlog.runs(self.runs) or ("",)
        calls = runner.read(run, self.runs).calls if run else ()
        return any(call.open and call.call.tool in ("issue_file", "issue_comment") for call in calls)

    def _life(self) -> int:
        if self._alive is None:
            self._alive = self._carried.start()
        return self._alive

    def _finished(self) -> bool:
        """Let this life end; whether the run is done then. What it asks is answered."""
        self._life()
        self._alive = None
        status = self._carried.wait()
        (run,) = eventlog.runs(self.runs)
        state = runner.read(run, self.runs)
        for question in state.waiting:
            self.questions.append(question)
            self._settle(state, question)
        assert status == 0 or state.waiting, f"a life ended with {status}"
        return state.phase == "done"

    def _settle(self, state: replay.State, question: replay.Question) -> None:
        key = runner.key(state.run, question.call)
        for filed in (issue for issue in issues(self.world.tracker) if issue.key == key):
            found = f'{{"issue": {filed.id}, "cause": "{filed.cause}"}}'
            runner.settle(state.run, question.id, "ada", "done", found=found, runs=self.runs)
            return
        for noted in (comment for comment in comments(self.world.tracker) if comment.key == key):
            found = f'{{"issue": {noted.issue}, "comment": {noted.id}}}'
            runner.settle(state.run, question.id, "ada", "done", found=found, runs=self.runs)
            return
        runner.settle(state.run, question.id, "ada", "rerun", runs=self.runs)

    def _outcomes(self) -> int:
        """How many replies and results the run has saved."""
        logs = [log.read_bytes() for log in self.runs.glob(f"{BATCH}-*/seg-*.jsonl")] if self.runs.exists() else []
        return sum(log.count(outcome) for log in logs for outcome in OUTCOMES)
