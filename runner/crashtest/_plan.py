"""The plan: which scenarios a mode has, each played from scratch.

memory   the process dies at a point; what it wrote is there. Also: every later life dies at one point, which the limit
         on resumes must end.
power    the power goes with it: the disk becomes one of the states that a cut may leave.
service  the service fails a call: before or after it acts, its reply lost, its lookup down for a while.
person   keys and lookups are taken away, and the person is wrong, or does not answer.
model    a reply is lost before it was saved, and the model says something else when it is asked again.
late     an effect lands after its attempt was given up.

In `service` and `late` the first point is the trouble, the second a death at any moment after it; elsewhere the first
is a death and the second another one during the resume.
"""

from __future__ import annotations

import random
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import runner
from runner.crashtest import _troubles
from runner.crashtest._cast import Again, Without
from runner.crashtest._judged import Base, Scenario, judged
from runner.crashtest._lives import Lives, images
from runner.crashtest._points import anywhere, may_leave_open, may_lose_a_reply
from runner.crashtest._stage import Stage
from runner.crashtest._subject import Subject

Mode = Literal["memory", "power", "service", "person", "model", "late"]
MODES: Final[tuple[Mode, ...]] = ("memory", "power", "service", "person", "model", "late")

_MAY_CONCERN: Final = {"model": may_lose_a_reply, "person": may_leave_open}
_TROUBLES = {"service": _troubles.of_service, "late": _troubles.of_lateness}
_DEATHS_AFTER_A_TROUBLE = 8
"""Deaths tried after each trouble, for each second crash that is asked for: there are few troubles."""
_STORMS = 12
"""About how many first points are followed by deaths in every resume."""
_RESUMES = 3
_SPARE = 3
"""Deaths that no resume's count has to cover: of lives that began the run, and of the one that was refused."""
_BEYOND: Final = "beyond its end"
_ID: Final = re.compile(r"(?P<mode>[a-z]+):(?P<key>[^~/*]+)(?:~(?P<variant>\w+))?(?:(?P<how>[/*])(?P<second>\d+))?")


class NotRepeatable(runner.RunError):
    """Two undisturbed runs of the same agent in the same world differ: no death could be put at the same place twice.

    `first` and `second` are the points where they part; `why` is how the first one ended when it did not finish.
    """

    hint = "Make the agent and the world depend on nothing but their arguments: no clock, no random numbers."

    def __init__(self, first: str, second: str, why: str = "") -> None:
        super().__init__(first, second, why)
        self.first = first
        self.second = second
        self.why = why

    def __str__(self) -> str:
        if self.why:
            return f"the undisturbed run did not finish: {self.why}"
        return f"two undisturbed runs differ: {self.first!r} in the first, {self.second!r} in the second"


class NoSuchScenario(runner.RunError):
    """A sweep has no scenario of this id."""

    hint = "Take an id from a failure, and sweep the same agent with the same `without` and `seed`."

    def __init__(self, id: str) -> None:  # noqa: A002 (as scenarios call it)
        super().__init__(id)
        self.id = id

    def __str__(self) -> str:
        return f"the sweep has no scenario {self.id!r}"


@dataclass(frozen=True)
class Plan(Subject):
    """What is swept, and how much of everything is to be tried."""

    without: Collection[Without]
    pairs: int | Literal["all"]
    seed: int
    again: Again
    root: Path

    def base(self) -> Base:
        """The undisturbed run, played twice. Raises `NotRepeatable`, or what kept it from its end."""
        one, two = (self._undisturbed() for _ in range(2))
        if one.points != two.points or one.effects != two.effects:
            pairs = zip((*one.points, "the end"), (*two.points, "the end"), strict=False)
            first, second = next(((a, b) for a, b in pairs if a != b), (str(one.effects), str(two.effects)))
            raise NotRepeatable(first, second)
        return one

    def _undisturbed(self) -> Base:
        with self.lives() as lives:
            lives.play()
            if lives.how != "finished":
                raise lives.error or NotRepeatable("", "", lives.how)
            stage = lives.stage
            acting = frozenset(call for call, times in stage.acted.items() if times)
            return Base(tuple(lives.passed[0]), tuple(stage.attempts), acting, stage.effects())

    def firsts(self, mode: Mode, base: Base, every: int = 1) -> list[str]:
        """The first points of a mode, as its scenarios' ids name them; of points to die at each `every`th."""
        if mode in _TROUBLES:
            return [f"{a.call}#{at}" for a in base.attempts for at, _ in enumerate(_TROUBLES[mode](a))]
        among = range(0, len(base.points), every)
        return [f"{at}" for at in among if _MAY_CONCERN.get(mode, anywhere)(base.points, at)]

    def one(self, only: str, base: Base) -> list[Scenario]:
        """The scenario of this id. Raises `NoSuchScenario`."""
        wanted = _ID.fullmatch(only)
        mode = next((mode for mode in MODES if wanted is not None and mode == wanted["mode"]), None)
        if wanted is None or mode is None or wanted["key"] not in self.firsts(mode, base):
            raise NoSuchScenario(only)
        found = list(self.scenarios(mode, wanted["key"], base, wanted))
        if not found or found[0].second == _BEYOND:
            raise NoSuchScenario(only)
        return found

    def scenarios(self, mode: Mode, key: str, base: Base, wanted: re.Match[str] | None = None) -> Iterator[Scenario]:
        """The scenarios of a first point. `wanted`: the one of this id."""
        for variant in self._variants(mode, key):
            if wanted is not None and wanted["variant"] not in (None, variant or None):
                continue
            first = _First(self, base, mode, key, variant)
            yield from first.all() if wanted is None else first.one(wanted["how"], wanted["second"])

    def _variants(self, mode: Mode, key: str) -> Sequence[str]:
        if mode == "person":
            return "wrong", "nobody"
        if mode == "power":
            with self.lives() as lives:
                return [f"{at}" for at in range(len(images(lives.dead_at(int(key)), self.seed)))]
        return ("",)

    def lives(self, **how: Any) -> _Scene:
        """A scenario to be played in a folder of its own."""
        return _Scene(self, how)

    def seconds(self, name: str, among: Sequence[int], times: int = 1) -> list[int]:
        """Which second crashes are tried after a first one."""
        if self.pairs == "all" or self.pairs * times >= len(among):
            return list(among)
        rng = random.Random(f"{self.seed}:{name}")  # noqa: S311 (it picks examples; it protects nothing)
        return sorted(rng.sample(among, self.pairs * times))


class _Scene:
    """A folder for one scenario, gone when it is over."""

    def __init__(self, plan: Plan, how: dict[str, Any]) -> None:
        self._plan, self._how = plan, how

    def __enter__(self) -> Lives:
        plan = self._plan
        self._folder = Path(tempfile.mkdtemp(dir=plan.root))
        world = plan.world(self._folder)
        (self._folder / "workspace").mkdir(exist_ok=True)
        stage = Stage(self._folder, world, plan)
        return Lives(stage, plan.task, **{"without": plan.without, **self._how})

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder)


@dataclass(frozen=True)
class _First:
    """One first point, or one way of it."""

    plan: Plan
    base: Base
    mode: Mode
    key: str
    variant: str

    @property
    def id(self) -> str:
        """How scenarios name it."""
        return f"{self.mode}:{self.key}" + (f"~{self.variant}" if self.variant else "")

    def all(self) -> Iterator[Scenario]:
        """The scenario without a second crash, then those with one; none when the mode's matter does not come up."""
        with self._lives() as lives:
            alone = self._play(lives)
            if not self._concerns(lives):
                return
            yield alone
            resumed = self._second_dies_in(lives)
        began = self._where_the_trouble_begins(resumed)
        times = _DEATHS_AFTER_A_TROUBLE if self._trouble else 1
        for second in self.plan.seconds(self.id, range(began, len(resumed)), times):
            with self._lives() as lives:
                yield self._play(lives, second)
        if self.mode == "memory" and int(self.key) % max(1, len(self.base.points) // _STORMS) == 0:
            # A question that is only looked at counts as no resume.
            acts = (at for at, point in enumerate(resumed) if point.startswith(("model", "tool", "lookup")))
            if (first := next(acts, None)) is not None:
                yield self._storm(first)

    def one(self, how: str | None, second: str | None) -> Iterator[Scenario]:
        """One scenario again."""
        if how == "*":
            yield self._storm(int(second or 0))
            return
        with self._lives() as lives:
            yield self._play(lives, None if second is None else int(second))

    def _lives(self, **more: Any) -> _Scene:
        how: dict[str, Any] = {"trouble": self._trouble, **more}
        if self.mode == "person":
            how |= {"without": ("keys", "lookups"), "manner": self.variant}
        if self.mode == "model":
            how["again"] = self.plan.again
        return self.plan.lives(**how)

    @property
    def _trouble(self) -> _troubles.Trouble | None:
        if self.mode not in _TROUBLES:
            return None
        call, _, at = self.key.partition("#")
        attempt = next(attempt for attempt in self.base.attempts if attempt.call == call)
        return list(_TROUBLES[self.mode](attempt))[int(at)]

    def _play(self, lives: Lives, second: int | None = None) -> Scenario:
        kills = [] if self._trouble else [int(self.key)]
        cut = (int(self.variant), self.plan.seed) if self.mode == "power" else None
        lives.play(kills if second is None else [*kills, second], cut=cut)
        passed = self._second_dies_in(lives)
        name = "" if second is None else f"{second} {passed[second]}" if second < len(passed) else _BEYOND
        id_ = self.id if second is None else f"{self.id}/{second}"
        return judged(lives, self.base, id=id_, mode=self.mode, first=self._name(), second=name)

    def _second_dies_in(self, lives: Lives) -> list[str]:
        """The points of the life in which the second death falls: the troubled one itself, or else the resume."""
        at = 0 if self._trouble else 1
        return lives.passed[at] if len(lives.passed) > at else []

    def _name(self) -> str:
        if (trouble := self._trouble) is not None:
            return f"tool {trouble.tool} {trouble.call}: {trouble.name}"
        more = {"power": f", image {self.variant}", "person": f", {self.variant}"}.get(self.mode, "")
        return f"{self.key} {self.base.points[int(self.key)]}{more}"

    def _concerns(self, lives: Lives) -> bool:
        """Whether what the mode is about has come up: a question, or a reply asked for again."""
        if self.mode == "person":
            return bool(lives.stage.asked)
        return self.mode != "model" or any(times > 1 for times in lives.stage.heard.values())

    def _where_the_trouble_begins(self, passed: Sequence[str]) -> int:
        trouble = self._trouble
        begins = f"tool {trouble.tool} {trouble.call}, before" if trouble is not None else ""
        return passed.index(begins) if begins else 0

    def _storm(self, at: int) -> Scenario:
        """Every resume dies at this point: the limit on resumes must end that, or the run itself.

        The first resume after an answer is not counted (spec row 4), so there may be one more for each answer.
        """
        with self._lives(resumes=_RESUMES) as lives:
            lives.play([int(self.key)], every=at)
            stopped, died = lives.how, len(lives.deaths)
            lives.resumes = 2 * _RESUMES
            lives.play()
            most = _RESUMES + _SPARE + lives.stage.answers
            if died > most or not stopped.startswith(("TooManyResumes", "finished")):
                lives.stage.problems.append(f"{_RESUMES} resumes allowed, {died} lives died, and then: {stopped}")
            passed = self._second_dies_in(lives)
            second = f"{at} {passed[at]}, in every resume" if at < len(passed) else _BEYOND
            return judged(lives, self.base, id=f"{self.id}*{at}", mode="memory", first=self._name(), second=second)
