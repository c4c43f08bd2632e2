"""The plan of a sweep: which scenarios each mode has. Each scenario runs from scratch.

A scenario has a first point, where its mode's trouble comes, and perhaps a second one, where a process dies: during the
resume, or after a fault in the same process.
"""

import contextlib
import random
import re
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, cast

from runner.testing._history import events, images
from runner.testing._inputs import Inputs, NoSuchScenario, NothingToCount, NotRepeatable, Reword, Without
from runner.testing._modes import TROUBLES, Mode, Trouble
from runner.testing._play import dead_at, play
from runner.testing._service_faults import ServiceFault
from runner.testing._verdict import Baseline, Scenario, decisions, judge
from runner.testing._virtual import quiet_deaths
from runner.testing._world import World

_DEATHS_AFTER_A_FAULT = 8
"""Deaths tried after each fault, for each second crash that is asked for: there are few faults."""
_BEYOND: Final = "beyond its end"
_ID: Final = re.compile(r"(?P<mode>[a-z]+):(?P<key>[^~/]+)(?:~(?P<variant>\w+))?(?:/(?P<second>\d+))?")


@dataclass(frozen=True)
class Case:
    """A scenario to be played, in the parts of its id.

    `key` is its first point: a number, or a call and the number of its fault. `variant` is one of the mode's there. A
    process dies at the point `second` after that.
    """

    mode: Mode
    key: str
    variant: str = ""
    second: int | None = None

    def __str__(self) -> str:
        variant = f"~{self.variant}" if self.variant else ""
        return f"{self.mode}:{self.key}{variant}" + ("" if self.second is None else f"/{self.second}")

    @property
    def trouble(self) -> Trouble:
        return TROUBLES[self.mode]

    def fault(self, baseline: Baseline) -> ServiceFault | None:
        """The fault that is its first point, if it is one."""
        if self.trouble.faults is None:
            return None
        call, _, at = self.key.partition("#")
        attempt = next(attempt for attempt in baseline.attempts if attempt.call == call)
        return list(self.trouble.faults(attempt))[int(at)]

    def first_name(self, baseline: Baseline) -> str:
        if (fault := self.fault(baseline)) is not None:
            return f"tool {fault.tool} {fault.call}: {fault.name}"
        variant = f", {self.trouble.label}{self.variant}" if self.variant else ""
        return f"{self.key} {baseline.points[int(self.key)]}{variant}"

    def second_name(self, world: World) -> str:
        passed = self.second_dies_in(world)
        if self.second is None:
            return ""
        if self.second >= len(passed):
            return _BEYOND
        return f"{self.second} {passed[self.second]}"

    def second_dies_in(self, world: World) -> list[str]:
        """The points of the process in which the second crash falls: the one with the trouble, or else the next."""
        return next(iter(world.passed[0 if self.trouble.goes_on else 1 :]), [])


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
        with self.world() as world:
            play(world)
            if world.how != "finished":
                raise world.error or NotRepeatable("", "", world.how)
            return Baseline(
                points=tuple(world.passed[0]),
                attempts=tuple(world.attempts),
                acting=frozenset(call for call, times in world.acted.items() if times),
                decided=decisions(events(world.family())),
                effects=world.effects(),
                weights=world.weights,
            )

    def firsts(self, mode: Mode, baseline: Baseline, every: int = 1) -> list[str]:
        """The first points of a mode, as its scenarios' ids name them; of points of a run, each `every`th."""
        trouble = TROUBLES[mode]
        if trouble.faults is not None:
            return [f"{a.call}#{at}" for a in baseline.attempts for at, _ in enumerate(trouble.faults(a))]
        among = range(0, len(baseline.points), every)
        return [f"{at}" for at in among if trouble.at(baseline.points, at)]

    def one(self, only: str, baseline: Baseline) -> list[Scenario]:
        """The scenario of this id, or of each variant where it names none. Raises `NoSuchScenario`."""
        wanted = _ID.fullmatch(only)
        if wanted is None or wanted["mode"] not in TROUBLES:
            raise NoSuchScenario(only)
        mode, second = cast("Mode", wanted["mode"]), wanted["second"]
        if wanted["key"] not in self.firsts(mode, baseline):
            raise NoSuchScenario(only)
        found = [
            self.play(replace(case, second=None if second is None else int(second)), baseline)[0]
            for case in self._variants(mode, wanted["key"], baseline)
            if wanted["variant"] in (None, case.variant)
        ]
        if not found or found[0].second == _BEYOND:
            raise NoSuchScenario(only)
        return found

    def scenarios(self, mode: Mode, key: str, baseline: Baseline) -> Iterator[Scenario]:
        """The scenarios of a first point, without a second crash and with one; none where there is nothing to try."""
        for case in self._variants(mode, key, baseline):
            alone, world = self.play(case, baseline)
            if case.trouble.shows(world):
                yield alone
                for more in self._seconds(case, case.second_dies_in(world), baseline):
                    yield self.play(more, baseline)[0]

    def _variants(self, mode: Mode, key: str, baseline: Baseline) -> Iterator[Case]:
        for variant in TROUBLES[mode].variants(baseline, lambda: self._images(int(key))):
            yield Case(mode, key, variant)

    def _images(self, point: int) -> int:
        """How many images a power cut at a point may leave."""
        with self.world() as world:
            return len(images(dead_at(world, point), self.seed))

    def _seconds(self, case: Case, passed: Sequence[str], baseline: Baseline) -> Iterator[Case]:
        """The same with each second crash that is tried, given the points at which it may fall."""
        if (fault := case.fault(baseline)) is not None:
            begins, times = passed.index(f"tool {fault.tool} {fault.call}, before"), _DEATHS_AFTER_A_FAULT
        else:
            begins, times = (int(case.key) + 1 if case.trouble.goes_on else 0), 1
        among = range(begins, len(passed))
        if self.pairs != "all" and self.pairs * times < len(among):
            rng = random.Random(f"{self.seed}:{case}")  # noqa: S311 (it picks examples; it protects nothing)
            yield from (replace(case, second=at) for at in sorted(rng.sample(among, self.pairs * times)))
        else:
            yield from (replace(case, second=at) for at in among)

    def play(self, case: Case, baseline: Baseline) -> tuple[Scenario, World]:
        """Play a scenario: the verdict, and what it was played in."""
        trouble, fault = case.trouble, case.fault(baseline)
        firsts = [] if fault is not None else [int(case.key)]
        seconds = [] if case.second is None else [case.second]
        with self.world(fault=fault, event=trouble.event, **trouble.how(case.variant, self.reword)) as world:
            if trouble.goes_on:
                play(world, seconds, happens=firsts)
            elif trouble.event is not None:
                play(world, happens=[*firsts, *seconds])
            else:
                play(world, [*firsts, *seconds])
            names = case.first_name(baseline), case.second_name(world)
            return judge(world, baseline, str(case), case.mode, *names), world

    @contextlib.contextmanager
    def world(self, **how: Any) -> Iterator[World]:
        """A world in a folder and an environment of its own, which are removed at its end."""
        with tempfile.TemporaryDirectory(dir=self.root) as name:
            folder = Path(name)
            outside = self.environment(folder)
            (folder / "workspace").mkdir(exist_ok=True)
            try:
                with quiet_deaths():
                    yield World(folder, outside, self, **{"without": self.without, "seed": self.seed, **how})
            finally:
                if hasattr(outside, "close"):
                    outside.close()
