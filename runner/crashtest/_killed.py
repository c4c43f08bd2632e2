"""Real deaths: the run is played once to count its points, then from scratch for each of a sample, by real SIGKILL.

Every life is a fork of this process, with the user's factories called anew in it; nothing but the folder goes from one
life to the next. For each point there are two scenarios: a death there and an undisturbed resume, and the same with a
second death somewhere in the resume. Real processes repeat only roughly, because threads and other processes take their
own time: a scenario whose life ended before its point came is not counted.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import eventlog
import runner
from runner.crashtest._deadly import RUN, Life, Notes, paid_twice
from runner.crashtest._judged import Scenario
from runner.crashtest._plan import NotRepeatable
from runner.crashtest._subject import Subject
from runner.crashtest._swept import Swept, counted

W = TypeVar("W")
MODE: Final = "kill"
Between = Callable[[Any], None]


def killed(
    *,
    world: Callable[[Path], W],
    agent: Callable[[W], runner.Agent],
    task: str,
    effects: Callable[[W], Mapping[str, int]],
    points: int = 40,
    seed: int = 0,
    only: str = "",
    between: Callable[[W], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Swept:
    """Kill a real process at a sample of the points of a run, resume it in another, and count what is in the world.

    world     makes or opens the outside world in a folder; called in every life, so it must all be in that folder
    agent, task, effects  as for `sweep`
    points    at how many points of the undisturbed run a process dies, evenly spread; at all if there are fewer
    seed      draws where the second deaths fall
    only      one scenario, by the id that a failure names
    between   called with the world after every death and at the end: what else a crash takes with it
    progress  called with the number of points done and how many there are

    Forks this process, so call it where no other thread holds a lock. Real syncs cost what they cost: `TMPDIR` is the
    disk. Raises `NotRepeatable` when the run does not finish even if nobody kills it.
    """
    subject = Subject(world, agent, task, effects)
    with _scratch() as folder:
        calm = _Played(subject, folder, between)
        if calm.live(None) != "finished":
            raise NotRepeatable("", "", calm.said())
        (names,) = calm.notes.read("points")
        wanted = calm.happened()
        calm.over()
    said, _, then = only.partition(":")[2].partition("/")
    chosen = [int(said)] if said else _spread(len(names), points)
    scenarios: list[Scenario] = []
    for done, first in enumerate(chosen, start=1):
        with _scratch() as folder:
            scenarios += _around(subject, folder, first, int(then) if then else None, wanted, seed, between)
        if progress is not None:
            progress(done, len(chosen))
    asked_for = tuple(each for each in scenarios if only in ("", each.id))
    return Swept(points=tuple(names), rows=(counted(MODE, "", asked_for),), scenarios=asked_for)


def _spread(of: int, points: int) -> list[int]:
    """That many numbers below `of`, evenly spread, the first and the last among them."""
    if points >= of or points < 2:  # noqa: PLR2004 (a first and a last)
        return list(range(of))
    return sorted({round(n * (of - 1) / (points - 1)) for n in range(points)})


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="refold-killed-", ignore_cleanup_errors=True) as folder:
        yield Path(folder).resolve()


def _around(  # each argument is one fact about what is played
    subject: Subject,
    folder: Path,
    first: int,
    second: int | None,
    wanted: Mapping[str, int],
    seed: int,
    between: Between | None,
) -> Iterator[Scenario]:
    """A death at one point, and the same with a second one, drawn from the points of the resume unless it is given."""
    once = _Played(subject, folder / "once", between)
    if once.live(first) != "killed":
        once.over()
        return
    how = once.live(None)
    yield once.judged(f"{MODE}:{first}", how, wanted)
    once.over()
    resumed = once.notes.read("points")
    if not resumed:
        return
    if second is None:
        second = random.Random(f"{seed}/{first}").randrange(len(resumed[0]))  # noqa: S311 (a sample, no secret)
    twice = _Played(subject, folder / "twice", between)
    if twice.live(first) == "killed" and twice.live(second) == "killed":
        yield twice.judged(f"{MODE}:{first}/{second}", twice.live(None), wanted)
    twice.over()


@dataclass(frozen=True)
class _Played:
    """One scenario, in a folder of its own."""

    subject: Subject
    folder: Path
    between: Between | None

    def __post_init__(self) -> None:
        (self.folder / "world").mkdir(parents=True, exist_ok=True)

    @property
    def notes(self) -> Notes:
        """What its lives left behind."""
        return Notes(self.folder / "notes")

    def said(self) -> str:
        """The last thing that its lives said on the way."""
        said = self.folder / "said"
        return said.read_text(encoding="utf-8", errors="replace").strip()[-2_000:] if said.exists() else ""

    def happened(self) -> dict[str, int]:
        """What is in the world, in a fresh look at it."""
        return self.subject.happened(self.subject.world(self.folder / "world"))

    def over(self) -> None:
        """Nobody lives here any more."""
        if self.between is not None:
            self.between(self.subject.world(self.folder / "world"))

    def live(self, dies: int | None) -> str:
        """One life: `finished`, `killed`, or `failed`."""
        status = _forked(lambda: Life(self.subject, self.folder, dies).live(), self.folder / "said")
        if status == 0:
            return "finished"
        if status != -signal.SIGKILL:
            return "failed"
        self.over()
        return "killed"

    def judged(self, name: str, how: str, wanted: Mapping[str, int]) -> Scenario:
        """What it came to: the world against an undisturbed run's, and the log against itself."""
        had = self.happened()
        finished = how == "finished"
        names = sorted({*had, *wanted})
        duplicates = sum(max(0, had.get(each, 0) - wanted.get(each, 0)) for each in names)
        lost = sum(max(0, wanted.get(each, 0) - had.get(each, 0)) for each in names) if finished else 0
        first, *rest = self.notes.read("died")
        why = [] if finished else [f"the last life {how}: {self.said()}"]
        if duplicates or lost:
            why.append(f"effects are {had}, and {dict(wanted)} in an undisturbed run")
        if finished:
            why += self._of_the_log(deaths=1 + len(rest))
        return Scenario(
            id=name,
            mode=MODE,
            first=first,
            second=rest[0] if rest else "",
            duplicates=duplicates,
            lost=lost,
            paid_twice=paid_twice(self.notes),
            questions=tuple(dict.fromkeys(self.notes.read("asked"))),
            unfinished=not finished,
            why=tuple(why),
        )

    def _of_the_log(self, deaths: int) -> Iterator[str]:
        runs = self.folder / "runs"
        verdict = eventlog.verify(runs, RUN)
        if not verdict.ok:
            yield f"the log does not verify: {verdict}"
        state = runner.read(RUN, runs)
        if state.open:
            yield f"left open: {', '.join(state.open)}"
        again = paid_twice(self.notes)
        if again > min(deaths, state.spent.lost_asks):
            yield f"{again} replies were paid twice, in {deaths} deaths; the log has {state.spent.lost_asks} lost asks"


def _forked(body: Callable[[], None], said: Path) -> int:
    """The exit status of a fork that runs `body`, or minus the signal that ended it. What it prints goes to `said`."""
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads of this process are not in the fork
        child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        printed = os.open(said, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        for descriptor in (1, 2):
            os.dup2(printed, descriptor)
        body()
        status = 0
    except BaseException:  # noqa: BLE001 (whatever it is, this process ends here and must not go on as its parent)
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)
