"""Real processes of a program, ended by SIGKILL at random: `python -m tests.durable.kills [DEATHS [SEED]]`.

A process is forked for each life, so that many fit into a minute. What is outside is files. A person answers with the
truth, and only where the declared effect needs one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import eventlog
import replay
import runner
from runner._durable import Durable

PAUSED = 3


class Outside:
    """The services: a bank that knows keys, a post that can be asked, a wire that can't."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def did(self, what: str, key: str) -> None:
        """Note an effect, in one write."""
        with (self.folder / what).open("ab", buffering=0) as file:
            file.write(f"{key}\n".encode())

    def times(self, what: str, key: str = "") -> int:
        """How often it happened; with a key, under this one."""
        with contextlib.suppress(FileNotFoundError):
            return sum(key in line for line in (self.folder / what).read_text().splitlines())
        return 0

    def charge(self, call: runner.Call) -> str:
        """Charge once for each key."""
        time.sleep(0.002)
        if not self.times("charge", call.key):
            self.did("charge", call.key)
        time.sleep(0.002)
        return "charged"

    async def mail(self, call: runner.Call) -> str:
        """Mail each time."""
        await asyncio.sleep(0.002)
        self.did("mail", call.key)
        await asyncio.sleep(0.002)
        return "mailed"

    def wire(self, call: runner.Call) -> str:
        """Wire each time."""
        time.sleep(0.002)
        self.did("wire", call.key)
        time.sleep(0.002)
        return "wired"

    def mailed(self, call: runner.Call) -> runner.Found | runner.Missing:
        """Whether a mail was sent."""
        return runner.Found("mailed") if self.times("mail", call.key) else runner.Missing()

    def program(self) -> Any:
        """Draw a number, charge, mail and wire."""
        charge = runner.tool(effect="keyed", key_ttl=timedelta(days=1), name="charge", schema=_ANY)(self.charge)
        mail = runner.tool(name="mail", schema=_ANY)(self.mail)
        mail.lookup(visible_within=0)(self.mailed)
        wire = runner.tool(name="wire", schema=_ANY)(self.wire)

        @runner.durable_main(name="order", tools=[charge, mail, wire])
        async def order(run: Durable, _task: str, _inputs: None) -> str:
            amount = await run.step("amount", lambda: random.randrange(10**9))  # noqa: S311 (no secret)
            said = [await run.act(name, {"amount": amount}) for name in ("charge", "mail", "wire")]
            return ", ".join(said)

        return order


_ANY = {"type": "object", "properties": {}}


def life(runs: Path, outside: Outside, dies_after: float | None) -> int | None:
    """One life in a process of its own: its exit status, or None when it was killed."""
    child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(BaseException):
            came = asyncio.run(runner.run(outside.program(), "Order.", run="r", runs=runs))
            status = 0 if isinstance(came, runner.Finished) else PAUSED
        os._exit(status)
    if dies_after is not None:
        time.sleep(dies_after)
        os.kill(child, signal.SIGKILL)
    _, how = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(how) if os.WIFEXITED(how) else None


def scenario(folder: Path, deaths: list[float]) -> Counter[str]:
    """A run whose processes die after these times, and then go on undisturbed: what is wrong, and what it took."""
    runs, outside, found = folder / "runs", Outside(folder), Counter[str]()
    for number in range(len(deaths) + 8):
        status = life(runs, outside, deaths[number] if number < len(deaths) else None)
        found["deaths"] += status is None
        if status == PAUSED:
            found["questions"] += _answer(runs, outside)
        if status == 0:
            break
    else:
        found["wrong: never finished"] += 1
    for what in ("charge", "mail", "wire"):
        times = outside.times(what)
        found[f"wrong: {what} {times} times"] += times != 1
    told = replay.audit(eventlog.store(runs).read("r").lines)
    found["wrong: not every call has a result"] += [call.tool for call in told.calls if call.how] != list(_ORDER)
    found["effects"] += len(_ORDER)
    return found


_ORDER = ("charge", "mail", "wire")


def _answer(runs: Path, outside: Outside) -> int:
    """Settle the questions, with the truth."""
    state = runner.read_state("r", runs)
    for question in state.waiting:
        if question.tool != "wire":
            return 100  # no other effect needs a person
        happened = outside.times("wire") > 0
        runner.settle("r", question.id, "mae", "done" if happened else "rerun", "wired" if happened else "", runs=runs)
    return len(state.waiting)


def main(wanted: int, seed: int) -> Counter[str]:
    """Scenarios until so many processes were killed; what they came to together."""
    draw, found, longest = random.Random(seed), Counter[str](), 0.0  # noqa: S311 (no secret)
    while found["deaths"] < wanted:
        with tempfile.TemporaryDirectory() as folder:
            begun = time.monotonic()
            if not found["runs"]:
                life(Path(folder, "runs"), Outside(Path(folder)), None)
                longest = (time.monotonic() - begun) * 1.2
                shutil.rmtree(Path(folder))
                Path(folder).mkdir()
            found += scenario(Path(folder), [draw.uniform(0, longest) for _ in range(draw.choice((1, 1, 2, 3)))])
            found["runs"] += 1
    return found


if __name__ == "__main__":
    told = main(*(int(word) for word in [*sys.argv[1:], *("200", "1")[len(sys.argv) - 1 :]]))
    print(dict(+told))  # noqa: T201 (a command)
    sys.exit(any(what.startswith("wrong") for what in +told))
