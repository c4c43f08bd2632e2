"""The plan of a sweep: which scenarios each mode has. Each scenario runs from scratch.

A scenario has a first point, where its mode's trouble comes, and perhaps a second one, where a process dies: during the
resume, or after a fault in the same process.
"""

import contextlib
import random
import re
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from replay.events import ReplySaved, ResultRecorded
from runner.testing._environment import Inputs, SimulatedEnvironment
from runner.testing._errors import NoSuchScenario, NothingToCount, NotRepeatable
from runner.testing._history import events, images
from runner.testing._instrumented_agent import Reword, Without
from runner.testing._modes import MODES, TROUBLES, Mode, Trouble
from runner.testing._scenario_run import ScenarioRun
from runner.testing._service_faults import ServiceFault
from runner.testing._verdict import Baseline, Scenario, decisions, judge
from runner.testing._virtual import quiet_deaths

_DEATHS_AFTER_A_FAULT = 8
"""Deaths tried after each fault, for each second crash that is asked for: there are few faults."""
_REPEATED_DEATHS = 12
"""About how many first points are followed by a death in every resume."""
_RESUMES = 3
_SPARE = 4
"""Deaths that the limit on resumes does not count: of processes that started the run, and of the refused resume, which
may die once more while it closes the run."""
_BEYOND: Final = "beyond its end"
_ID: Final = re.compile(r"(?P<mode>[a-z]+):(?P<key>[^~/*]+)(?:~(?P<variant>\w+))?(?:(?P<how>[/*])(?P<second>\d+))?")


@dataclass(frozen=True, kw_only=True)
class Plan(Inputs):
    """What is swept, and how many scenarios are tried."""

    without: Collection[Without] = ()
    pairs: int | Literal["all"] = 0
    seed: int = 0
    reword: Reword
    root: Path

    def baseline(self) -> Baseline:
        """The undisturbed run, which must be the same twice. Raises `NotRepeatable`, or the run's own error."""
        one, two = (self._undisturbed() for _ in range(2))
        if one.points != two.points or one.effects != two.effects:
            pairs = zip((*one.points, "the end"), (*two.points, "the end"), strict=False)
            first, second = next(((a, b) for a, b in pairs if a != b), (str(one.effects), str(two.effects)))
            raise NotRepeatable(first, second)
        if not one.attempts or not one.effects:
            raise NothingToCount(acted=bool(one.attempts))
        return one

    def _undisturbed(self) -> Baseline:
        with self.run() as run:
            run.play()
            if run.how != "finished":
                raise run.error or NotRepeatable("", "", run.how)
            environment = run.environment
            return Baseline(
                points=tuple(run.passed[0]),
                attempts=tuple(environment.attempts),
                acting=frozenset(call for call, times in environment.acted.items() if times),
                decided=decisions(events(environment.machine)),
                effects=environment.effects(),
                weights=environment.weights,
            )

    def firsts(self, mode: Mode, baseline: Baseline, every: int = 1) -> list[str]:
        """The first points of a mode, as its scenarios' ids name them; of points of a run, each `every`th."""
        trouble = TROUBLES[mode]
        if trouble.faults is not None:
            return [f"{a.call}#{at}" for a in baseline.attempts for at, _ in enumerate(trouble.faults(a))]
        among = range(0, len(baseline.points), every)
        return [f"{at}" for at in among if trouble.at(baseline.points, at)]

    def one(self, only: str, baseline: Baseline) -> list[Scenario]:
        """The scenario of this id. Raises `NoSuchScenario`."""
        wanted = _ID.fullmatch(only)
        mode = next((mode for mode in MODES if wanted is not None and mode == wanted["mode"]), None)
        if wanted is None or mode is None or wanted["key"] not in self.firsts(mode, baseline):
            raise NoSuchScenario(only)
        found = list(self.scenarios(mode, wanted["key"], baseline, wanted))
        if not found or found[0].second == _BEYOND:
            raise NoSuchScenario(only)
        return found

    def scenarios(
        self, mode: Mode, key: str, baseline: Baseline, wanted: re.Match[str] | None = None
    ) -> Iterator[Scenario]:
        """The scenarios of a first point. `wanted`: the one of this id."""
        for variant in TROUBLES[mode].variants(baseline, lambda: self._images(int(key))):
            if wanted is not None and wanted["variant"] not in (None, variant or None):
                continue
            first = _FirstPoint(self, baseline, mode, key, variant)
            yield from first.all() if wanted is None else first.one(wanted["how"], wanted["second"])

    def _images(self, point: int) -> int:
        """How many images a power cut at a point may leave."""
        with self.run() as run:
            return len(images(run.dead_at(point), self.seed))

    @contextlib.contextmanager
    def run(self, **how: Any) -> Iterator[ScenarioRun]:
        """A scenario in a folder and an environment of its own, which are removed at its end."""
        with tempfile.TemporaryDirectory(dir=self.root) as name:
            folder = Path(name)
            outside = self.environment(folder)
            (folder / "workspace").mkdir(exist_ok=True)
            environment = SimulatedEnvironment(folder, outside, self)
            try:
                with quiet_deaths():
                    yield ScenarioRun(environment, **{"without": self.without, "seed": self.seed, **how})
            finally:
                if hasattr(outside, "close"):
                    outside.close()

    def seconds(self, name: str, among: Sequence[int], times: int = 1) -> list[int]:
        """Which second crashes are tried after a first one."""
        if self.pairs == "all" or self.pairs * times >= len(among):
            return list(among)
        rng = random.Random(f"{self.seed}:{name}")  # noqa: S311 (it picks examples; it protects nothing)
        return sorted(rng.sample(among, self.pairs * times))


@dataclass(frozen=True)
class _FirstPoint:
    """The scenarios of one first point, or of one variant of it."""

    plan: Plan
    baseline: Baseline
    mode: Mode
    key: str
    variant: str

    @property
    def id(self) -> str:
        """The beginning of the ids of its scenarios."""
        return f"{self.mode}:{self.key}" + (f"~{self.variant}" if self.variant else "")

    @property
    def _trouble(self) -> Trouble:
        return TROUBLES[self.mode]

    @property
    def _fault(self) -> ServiceFault | None:
        if self._trouble.faults is None:
            return None
        call, _, at = self.key.partition("#")
        attempt = next(attempt for attempt in self.baseline.attempts if attempt.call == call)
        return list(self._trouble.faults(attempt))[int(at)]

    def all(self) -> Iterator[Scenario]:
        """The scenario without a second crash, then those with one; none when the mode has nothing to try here."""
        with self._run() as run:
            alone = self._play(run)
            if not self._trouble.shows(run):
                return
            yield alone
            passed = self._second_dies_in(run)
        times = _DEATHS_AFTER_A_FAULT if self._fault else 1
        for second in self.plan.seconds(self.id, range(self._begins(passed), len(passed)), times):
            with self._run() as run:
                yield self._play(run, second)
        if self._trouble.every_resume and int(self.key) % max(1, len(self.baseline.points) // _REPEATED_DEATHS) == 0:
            # A resume that dies while it waits for an answer is not counted.
            acts = (at for at, point in enumerate(passed) if point.startswith(("model", "tool", "lookup")))
            if (first := next(acts, None)) is not None:
                yield self._repeated_death(first)

    def one(self, how: str | None, second: str | None) -> Iterator[Scenario]:
        """One scenario, by the end of its id."""
        if how == "*":
            yield self._repeated_death(int(second or 0))
            return
        with self._run() as run:
            yield self._play(run, None if second is None else int(second))

    def _run(self, **more: Any) -> contextlib.AbstractContextManager[ScenarioRun]:
        how = self._trouble.how(self.variant, self.plan.reword)
        return self.plan.run(fault=self._fault, event=self._trouble.event, **how, **more)

    def _play(self, run: ScenarioRun, second: int | None = None) -> Scenario:
        firsts = [] if self._fault else [int(self.key)]
        seconds = [] if second is None else [second]
        if run.event is None:
            run.play([*firsts, *seconds])
        elif self._trouble.goes_on:
            run.play(seconds, happens=firsts)
        else:
            run.play(happens=[*firsts, *seconds])
        return self._judge(run, "/", second)

    def _judge(self, run: ScenarioRun, how: str, second: int | None) -> Scenario:
        passed = self._second_dies_in(run)
        id_, name = self.id, ""
        if second is not None:
            id_ = f"{self.id}{how}{second}"
            name = f"{second} {passed[second]}" if second < len(passed) else _BEYOND
            name += ", in every resume" if how == "*" and name != _BEYOND else ""
        return judge(run, self.baseline, id=id_, mode=self.mode, first=self._name(), second=name)

    def _second_dies_in(self, run: ScenarioRun) -> list[str]:
        """The points of the process in which the second crash falls: the one with the trouble, or else the next."""
        at = 0 if self._trouble.goes_on else 1
        return run.passed[at] if len(run.passed) > at else []

    def _begins(self, passed: Sequence[str]) -> int:
        """The first point at which the second crash may fall."""
        if (fault := self._fault) is not None:
            return passed.index(f"tool {fault.tool} {fault.call}, before")
        return int(self.key) + 1 if self._trouble.goes_on else 0

    def _name(self) -> str:
        if (fault := self._fault) is not None:
            return f"tool {fault.tool} {fault.call}: {fault.name}"
        more = f", {self._trouble.label}{self.variant}" if self.variant else ""
        return f"{self.key} {self.baseline.points[int(self.key)]}{more}"

    def _repeated_death(self, at: int) -> Scenario:
        """Every resume dies at this point: the limit on resumes must end the run, unless the run finishes.

        A resume after a life that came to something is not counted, so there may be one more for each answer, reply
        and result: where somebody answers in every life, they go on until the scenario ends.
        """
        with self._run(resumes=_RESUMES) as run:
            run.play([int(self.key)], every=at)
            stopped, died = run.how, len(run.deaths)
            run.resumes = 2 * _RESUMES
            run.play()
            free = sum(isinstance(event, ReplySaved | ResultRecorded) for event in events(run.environment.machine))
            most = _RESUMES + _SPARE + run.environment.answers + free
            if died > most or not stopped.startswith(("TooManyResumes", "finished", "dead")):
                run.environment.problems.append(
                    f"{_RESUMES} resumes allowed, {died} processes died, and then: {stopped}"
                )
            return self._judge(run, "*", at)
