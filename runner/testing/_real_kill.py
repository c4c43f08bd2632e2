"""Real kills by SIGKILL, with real flushes and threads: at a sample of a run's points, or at random moments.

Real processes repeat only roughly, because threads take their own time: a scenario whose process ended before its point
came is not counted, and a random moment can't be repeated at all.
"""

import contextlib
import random
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final, Unpack

import msgspec

from runner.testing._inputs import Inputs, NoSuchScenario, NothingToCount, NotRepeatable, Swept, W
from runner.testing._killed_run import PATIENCE, KilledRun
from runner.testing._report import Row, SweepReport, count_scenarios
from runner.testing._verdict import Scenario

MODE: Final = "kill"
LATER: Final = 0.8
"""Seconds after its first save within which a process is killed at random: one can get past the longest tool."""
_FAILURES: Final = 3
"""Processes that may end in a row without being killed and without finishing the run."""


def kill_sweep(
    *,
    points: int = 40,
    seed: int = 0,
    only: str = "",
    after_death: Callable[[W], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
    **swept: Unpack[Swept[W]],
) -> SweepReport:
    """Kill a real process at a sample of the points of a run, resume it in another, and count its effects.

    It forks this process, so call it where no other thread holds a lock. Real syncs take their time; `TMPDIR` chooses
    the disk. Each point has two scenarios: a death there and an undisturbed resume, and the same with a second death
    somewhere in the resume. Children are killed with their parent, at points of their own. A process that saves
    nothing for two minutes counts as one that hangs. A person who is asked about a call says that it happened if
    anything did since it began: without keys and lookups calls must not act side by side.

    `environment` makes or opens the outside systems in a folder. It is called in every process, so all their data must
    be in that folder. The run, `killed`, is kept in `runs` beside it. What else is swept is as for `sweep`.

    Args:
        points: At how many points of the undisturbed run a process is killed, evenly spread; at all if there are fewer.
        seed: Draws the points of the second deaths.
        only: The id of one scenario, as a failure names it.
        after_death: Called with the environment after every death and at the end, to do what else a crash would do.
        progress: Called with the number of points done and the number of all points.

    Returns:
        A report with one row, of mode `kill`.

    Raises:
        NotRepeatable: The run does not finish even if nothing kills it.
        NothingToCount: It called no tool that acts, or had no effect.
        NoSuchScenario: There is no scenario `only`, or this time its process ended before its point came.
    """
    made = Inputs(**swept)
    one = re.fullmatch(rf"{MODE}:(\d+)(?:/(\d+))?", only)
    if only and one is None:
        raise NoSuchScenario(only)
    names, wanted = _undisturbed(made, after_death)
    chosen = [int(one[1])] if one is not None else _spread(len(names), points)
    scenarios: list[Scenario] = []
    for done, first in enumerate(chosen, start=1):
        with _scratch() as folder:
            once, twice = (KilledRun(made, folder / name, after_death) for name in ("once", "more"))
            found = _scenario(once, [first], wanted)
            if found and (resumed := once.notes.read("points")):
                drawn = random.Random(f"{seed}/{first}").randrange(len(resumed[0]))  # noqa: S311 (a sample, no secret)
                second = int(one[2] or drawn) if one is not None else drawn
                found += _scenario(twice, [first, second], wanted)
            scenarios += found
        if progress is not None:
            progress(done, len(chosen))
    asked_for = tuple(each for each in scenarios if only in ("", each.id))
    if only and not asked_for:
        raise NoSuchScenario(only)
    return SweepReport(points=tuple(names), rows=(count_scenarios(MODE, "", asked_for),), scenarios=asked_for)


def _undisturbed(inputs: Inputs, after_death: Callable[[Any], None] | None) -> tuple[list[str], dict[str, int]]:
    """The points and the effects of a run that nothing kills.

    Paths of one length make logs of one length: where a log grows by a block is a point too.
    """
    with _scratch() as folder:
        run = KilledRun(inputs, folder / "none", after_death)
        if run.run() != "finished":
            raise NotRepeatable("", "", run.output())
        (names,) = run.notes.read("points")
        wanted = inputs.counts(run.outside())
        if not wanted:
            raise NothingToCount(acted=bool(run.notes.read("began")))
        run.clean_up()
        return names, wanted


def _spread(of: int, points: int) -> list[int]:
    """That many numbers below `of`, evenly spread, the first and the last among them."""
    if points >= of or points < 2:  # noqa: PLR2004 (a first and a last)
        return list(range(of))
    return sorted({round(n * (of - 1) / (points - 1)) for n in range(points)})


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="refold-killed-", ignore_cleanup_errors=True) as folder:
        yield Path(folder).resolve()


def _scenario(run: KilledRun, kills: Sequence[int], wanted: Mapping[str, int]) -> list[Scenario]:
    """Processes that die at these points, and one that finishes; none if one of them ended before its point came."""
    found = []
    if all(run.run(dies) == "killed" for dies in kills):
        found = [run.judge(f"{MODE}:{'/'.join(map(str, kills))}", MODE, run.run(), wanted, len(kills))]
    run.clean_up()
    return found


def random_kills(
    *,
    seconds: float = 60.0,
    seed: int | None = None,
    after_death: Callable[[W], None] | None = None,
    check: Callable[[W], Iterable[str]] | None = None,
    progress: Callable[[float], None] | None = None,
    failed: Callable[[str], None] | None = None,
    **swept: Unpack[Swept[W]],
) -> Row:
    """Kill the processes of one run after another at random moments, until the time is over and the last run finished.

    Each kill hits a process that has saved something, a random while later. What is killed is as for `kill_sweep`; the
    agent's limit of resumes must be high.

    Args:
        seconds: How long to go on.
        seed: Draws the moments; None for others each time.
        after_death: As for `kill_sweep`. If it is given, a half of the kills call it: each second of those kills
            nothing else, as if only the outside system had crashed.
        check: Says what else is wrong after a run, given the environment.
        progress: Called with the seconds that have passed.
        failed: Called with a sentence for each run that went wrong; its folder is kept and named.

    Returns:
        A row, of mode `random`; its `scenarios` are the kills.
    """
    made = Inputs(**swept)
    _, wanted = _undisturbed(made, after_death)
    began, found, count = time.monotonic(), list[Scenario](), 0
    chance = random.Random(seed)  # noqa: S311 (moments, no secrets)
    while (passed := time.monotonic() - began) < seconds:
        folder = Path(tempfile.mkdtemp(prefix="refold-random-")).resolve()
        run = KilledRun(made, folder, after_death)
        how, kills = _finish(run, chance, began + seconds, lambda: progress and progress(time.monotonic() - began))
        one = run.judge("random", "random", how, wanted, deaths=kills)
        why = [*one.why, *(check(run.outside()) if check is not None and not one.unfinished else ())]
        run.clean_up()
        found.append(msgspec.structs.replace(one, why=tuple(why)))
        count += kills
        if not why:
            shutil.rmtree(folder, ignore_errors=True)
        elif failed is not None:
            failed(f"a run of {made.task} went wrong under random SIGKILLs: {why[0]}; it is kept in {folder}")
    if progress is not None:
        progress(passed)
    return msgspec.structs.replace(count_scenarios("random", "", found), scenarios=count)


def _finish(run: KilledRun, chance: random.Random, until: float, progress: Callable[[], object]) -> tuple[str, int]:
    """Process after process, until one finishes the run; how the last one ended, and how many kills there were."""
    failures, how, kills = 0, "", 0
    while failures < _FAILURES and how != "finished":
        progress()
        process = run.begin()
        try:
            while time.monotonic() < until and _is_due(run, process, chance):
                kills += 1
                if _kill(run, process, chance):
                    break
            how = run.ended(process)
        finally:
            process.kill()
            process.join()
        failures = failures + 1 if how == "failed" else 0
    return how, kills


def _is_due(run: KilledRun, process: BaseProcess, chance: random.Random) -> bool:
    """Wait until the log grows and a random while more; False if the process ended before."""
    before, deadline = run.written(), time.monotonic() + PATIENCE
    while run.written() == before:
        if not process.is_alive() or time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    process.join(chance.random() * LATER)
    return process.is_alive()


def _kill(run: KilledRun, process: BaseProcess, chance: random.Random) -> bool:
    """One kill; whether the run's process was hit."""
    outside = run.after_death is not None and chance.random() < 0.5  # noqa: PLR2004 (a half)
    alone = outside and chance.random() < 0.5  # noqa: PLR2004 (a half)
    if outside:
        run.clean_up()
    if not alone:
        process.kill()
    return not alone
