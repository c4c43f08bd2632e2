"""Real processes of a program, ended by SIGKILL at random: `python -m tests.frameworks.kills --kills 200 FRAMEWORK`.

A process is forked for each life, so that many fit into a minute. What is outside is files. A person answers with the
truth, and only where the declared effect needs one. Prints what it counted; exit status 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import eventlog
import replay
import runner
from replay.events import ReplySaved
from tests.frameworks.orders import CALLS, ORDERS, TURNS

PAUSED = 3
PATIENCE = 120
"""Seconds after which a life counts as hung."""
EFFECTS = ("charge", "mail", "wire")


class Files:
    """The services, each a file: a bank that knows keys, a post that can be asked, a wire that can't."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder

    def note(self, what: str, key: str) -> None:
        """Add a line, in one write."""
        with (self.folder / what).open("ab", buffering=0) as file:
            file.write(f"{key}\n".encode())

    def noted(self, what: str) -> list[str]:
        """All lines."""
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / what).read_text().splitlines()
        return []

    def asked(self, turn: int) -> int:
        """Note a request to the model; how many there were for this turn before."""
        before = self.noted("ask").count(str(turn))
        self.note("ask", str(turn))
        return before

    async def did(self, tool: str, call: runner.Call) -> str:
        """Act after a moment, and take another to say so; the bank charges once for each key."""
        await asyncio.sleep(0.002)
        if tool in EFFECTS and not (tool == "charge" and call.key in self.noted(tool)):
            self.note(tool, call.key)
        await asyncio.sleep(0.002)
        return f"{tool} {call.arguments['n']}"

    def mailed(self, call: runner.Call) -> runner.Found | runner.Missing:
        """Whether a mail was sent."""
        return runner.Found("mail 4") if call.key in self.noted("mail") else runner.Missing()


class Case:
    """One run of a program, through all its lives. `found` is what was counted."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.runs, self.outside, self.found = kind, folder / "runs", Files(folder), Counter[str]()

    def life(self, dies_after: float | None) -> int | None:
        """One life in a process of its own: its exit status, or None when it was killed."""
        child = os.fork()
        if child == 0:
            signal.alarm(PATIENCE)
            status = 1
            try:
                program = ORDERS[self.kind](self.outside)
                came = asyncio.run(runner.run(program, "Order.", run="r", runs=self.runs))
                status = 0 if isinstance(came, runner.Finished) else PAUSED
            except BaseException:  # noqa: BLE001 (a forked child never comes back here)
                traceback.print_exc()
            finally:
                os._exit(status)
        if dies_after is not None:
            time.sleep(dies_after)
            os.kill(child, signal.SIGKILL)
        _, how = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(how) if os.WIFEXITED(how) else None

    def scenario(self, deaths: list[float]) -> Counter[str]:
        """The processes die after these times, and then go on undisturbed: what is wrong, and what it took."""
        found = self.found
        for number in range(len(deaths) + 8):
            saved, before = self._saved(), len(self.outside.noted("ask"))
            dies_after = deaths[number] if number < len(deaths) else None
            status = self.life(dies_after)
            again = [turn for turn in self.outside.noted("ask")[before:] if int(turn) < saved]
            found["wrong: a saved reply was asked for again"] += len(again)
            found["deaths"] += status is None
            found["wrong: a life hung"] += status is None and dies_after is None
            found["wrong: a life failed"] += status == 1
            found["in the middle of a call"] += status is None and self._in_doubt()
            if status == PAUSED:
                self._answer()
            if status == 0:
                break
        else:
            found["wrong: never finished"] += 1
        self._judge()
        return found

    def _judge(self) -> None:
        for what in EFFECTS:
            times = len(self.outside.noted(what))
            self.found[f"wrong: {what} {times} times"] += times != 1
            self.found["effects"] += times
        told = replay.audit(eventlog.store(self.runs).read("r").lines)
        self.found["wrong: not every call has a result"] += [one.tool for one in told.calls if one.how] != list(CALLS)
        asked = len(self.outside.noted("ask"))
        self.found["requests"] += asked
        self.found["wrong: a reply is missing"] += self._saved() != (0 if self.kind == "plain" else len(TURNS) + 1)
        self.found["replies"] += self._saved()

    def _lines(self) -> list[eventlog.Line]:
        try:
            return list(eventlog.store(self.runs).read("r").lines)
        except (eventlog.NoSuchRun, eventlog.NotARunsDirectory):  # killed before there was one
            return []

    def _saved(self) -> int:
        """How many replies are in the log."""
        raws = [replay.decode(raw, seq=line.seq) for line in self._lines() for raw in line.events]
        return sum(isinstance(event, ReplySaved) for event in raws)

    def _in_doubt(self) -> bool:
        lines = self._lines()
        return bool(lines) and any(call.in_doubt for call in replay.load(lines).calls)

    def _answer(self) -> None:
        """Settle the questions, with the truth. Only a wire needs a person."""
        for question in runner.read_state("r", self.runs).waiting:
            if question.tool != "wire" or question.kind != "settle":
                self.found[f"wrong: a person was asked to {question.kind} {question.tool}"] += 1
            happened = bool(self.outside.noted(question.tool))
            verdict, text = ("done", "wire 5") if happened else ("rerun", "")
            runner.settle("r", question.id, "mae", verdict, text, runs=self.runs)  # type: ignore[arg-type] # one of two
            self.found["questions"] += 1


def main(kind: str, kills: int, seed: int) -> Counter[str]:
    """Runs until so many processes were killed; what they came to together."""
    draw, found = random.Random(seed), Counter[str]()  # noqa: S311 (no secret)
    with tempfile.TemporaryDirectory() as folder:
        ORDERS[kind](Files(Path(folder)))  # every life is forked with the framework imported
        Case(kind, Path(folder, "first")).scenario([])
        begun = time.monotonic()
        found += Case(kind, Path(folder)).scenario([])
        longest = (time.monotonic() - begun) * 1.2
    while found["deaths"] < kills:
        with tempfile.TemporaryDirectory() as folder:
            deaths = [draw.uniform(0, longest) for _ in range(draw.choice((1, 1, 2, 3)))]
            found += Case(kind, Path(folder)).scenario(deaths)
            found["runs"] += 1
    return found


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("framework", choices=ORDERS)
    options.add_argument("--kills", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    told = main(given.framework, given.kills, given.seed)
    print(given.framework, dict(+told))  # noqa: T201 (a command)
    sys.exit(any(what.startswith("wrong") for what in +told))
