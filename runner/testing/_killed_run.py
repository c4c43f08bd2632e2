"""One run whose processes are killed: each is a fork of this one and calls the user's factories anew.

Only the folder is passed from one process to the next.
"""

import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal

import eventlog
import runner
from runner.testing._child_process import RUN, ChildRun, Notes
from runner.testing._environment import Inputs
from runner.testing._verdict import Scenario, differences, of_the_state


@dataclass(frozen=True)
class KilledRun:
    """One scenario, in a folder of its own. `after_death` is called with the environment after each death."""

    inputs: Inputs
    folder: Path
    after_death: Callable[[Any], None] | None

    def __post_init__(self) -> None:
        (self.folder / "environment").mkdir(parents=True, exist_ok=True)

    @property
    def notes(self) -> Notes:
        """The facts that its processes wrote."""
        return Notes(self.folder / "notes")

    def outside(self) -> Any:
        """The environment, opened anew."""
        return self.inputs.environment(self.folder / "environment")

    def output(self) -> str:
        """The end of what its processes printed."""
        said = self.folder / "said"
        return said.read_text(encoding="utf-8", errors="replace").strip()[-2_000:] if said.exists() else ""

    def clean_up(self) -> None:
        """Do what else a crash would do."""
        if self.after_death is not None:
            self.after_death(self.outside())

    def run(self, dies: int | None = None) -> Literal["finished", "killed", "failed"]:
        """Run one process to its end; it dies at the point numbered `dies`, or never."""
        how = self.ended(self.begin(dies))
        if how == "killed":
            self.clean_up()
        return how

    def begin(self, dies: int | None = None) -> BaseProcess:
        """Start one process. What it prints goes to a file in the folder."""
        process = multiprocessing.get_context("fork").Process(target=self._live, args=(dies,))
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads of this process are not in the fork
            process.start()
        return process

    def ended(self, process: BaseProcess) -> Literal["finished", "killed", "failed"]:
        """Wait until a process ends, and say how."""
        process.join()
        ends: dict[int | None, Literal["finished", "killed"]] = {0: "finished", -signal.SIGKILL: "killed"}
        return ends.get(process.exitcode, "failed")

    def _live(self, dies: int | None) -> None:
        sys.stdout = sys.stderr = (self.folder / "said").open("a", encoding="utf-8", buffering=1)
        for descriptor in (1, 2):
            os.dup2(sys.stdout.fileno(), descriptor)
        ChildRun(self.inputs, self.folder, dies).run()

    def judge(self, name: str, mode: str, how: str, wanted: Mapping[str, int], deaths: int) -> Scenario:
        """The verdict: the effects compared with an undisturbed run's, and the log checked."""
        finished = how == "finished"
        had = self.inputs.counts(self.outside())
        more, duplicates, lost = differences(had, wanted, finished=finished)
        points = [*self.notes.read("died"), "", ""]
        why = [] if finished else [f"the last process {how}: {self.output()}"]
        if more and (duplicates or lost):
            why.append(f"effects are {had}, and {dict(wanted)} in an undisturbed run")
        if finished:
            why += self._of_the_log(deaths)
        return Scenario(
            id=name,
            mode=mode,
            first=points[0],
            second=points[1],
            duplicates=duplicates,
            lost=lost,
            paid_twice=self.notes.paid_twice(),
            questions=tuple(dict.fromkeys(self.notes.read("asked"))),
            unfinished=not finished,
            why=tuple(why),
        )

    def _of_the_log(self, deaths: int) -> Iterator[str]:
        runs = eventlog.store(self.folder / "runs")
        names = runs.runs()
        for verdict in map(runs.verify, names):
            if not verdict.ok:
                yield f"the log does not verify: {verdict}"
        yield from of_the_state(runner.read_state(RUN, runs), self.notes.paid_twice(), deaths, max(1, len(names) - 1))
