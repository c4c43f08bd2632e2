"""The sweep: a crash at every point of a run, and a second one during its resume."""

import contextlib
import dataclasses
import json
import multiprocessing
import os
import sysconfig
import tempfile
import threading
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Literal, Unpack

import msgspec

import eventlog
import runner
from runner.testing._inputs import Decide, Reword, Swept, W, Without
from runner.testing._modes import MODES, Mode
from runner.testing._plan import Plan
from runner.testing._report import SweepReport, count_scenarios
from runner.testing._verdict import Baseline, Scenario

Progress = Callable[[int, int], None]
Job = tuple[Mode, str]


class WorkerFailed(runner.RunError):
    """A forked process of a sweep failed; `trace` is its traceback."""

    sentence = "a process of the sweep failed: {trace}"
    hint = "Sweep with jobs=1 to see it in this process."
    trace: str


def reword_reply(reply: runner.Reply) -> runner.Reply:
    """The same calls in other words: another text before them, arguments formatted differently, other provider ids."""
    if not reply.calls:
        return reply
    calls = tuple(
        msgspec.structs.replace(call, arguments=_reformat(call.arguments), provider_id=f"again-{call.provider_id}")
        for call in reply.calls
    )
    return msgspec.structs.replace(reply, text=f"In other words: {reply.text}", calls=calls, raw="")


def _reformat(arguments: str) -> str:
    """The same JSON with its keys in another order and other spaces; text that is no JSON is not changed."""
    try:
        parsed = json.loads(arguments)
    except ValueError:
        return arguments
    if isinstance(parsed, dict):
        parsed = dict(reversed(parsed.items()))
    return json.dumps(parsed, indent=1)


def sweep(  # noqa: PLR0913 (each option is one fact about the sweep)
    *,
    on_question: Decide | None = None,
    message: str = "",
    modes: Sequence[Mode] = MODES,
    without: Collection[Without] = (),
    every: int = 1,
    pairs: int | Literal["all"] = 2,
    seed: int = 0,
    jobs: int = 1,
    only: str = "",
    reword: Reword = reword_reply,
    progress: Progress | None = None,
    **swept: Unpack[Swept[W]],
) -> SweepReport:
    """Crash an agent at every point of a run, resume it, let it finish, and count its effects on outside systems.

    Nothing sleeps: time is virtual, so tools may wait only by `asyncio.sleep` and timeouts of asyncio. In mode `lease`
    a process may run in a thread of its own, one at a time: open sqlite with `check_same_thread=False`.

    Args:
        environment: Makes the outside systems of one scenario, given an empty folder. They survive every simulated
            death. The run's workspace is the folder `workspace` in there.
        agent: Makes the agent for one process, given what `environment` made.
        task: The task that the run starts with.
        effects: Counts the effects by name, given what `environment` made. Every scenario must end with the counts of
            the undisturbed run.
        inputs: The run's inputs, where the agent declares some.
        on_question: Decides every approval, as the hook of `start` does, but for what mode `person` refuses; None
            approves. What it returns must follow from the question alone. Where it returns None the question is
            left until it lapses, for which the agent needs `answer_within`.
        message: What somebody writes to the run while its first question is open.
        modes: The kinds of trouble to try, each a row of the report; see `MODES`.
        without: What to take away: `keys` (keyed tools become `non_idempotent`), `lookups`, or both.
        every: Try every n-th point at which a process can die; 1 tries all.
        pairs: How many second crashes to try after each first one, or `all`.
        seed: Draws the second crashes.
        jobs: How many processes share the work. They are forked.
        only: The id of one scenario to run, as a failure names it.
        reword: What the model says in mode `model` when it is asked again for a reply that was lost.
        progress: Called with the number of first points done and the number of all first points.

    Returns:
        The report: rows, scenarios and failures.

    Raises:
        NotRepeatable: Two undisturbed runs differ, or the undisturbed run does not finish.
        NothingToCount: The undisturbed run called no tool that acts, or had no effect.
        NoSuchScenario: There is no scenario `only`.
        WorkerFailed: A forked process failed.
        BadAgent: `agent` makes no agent, `effects` no numbers, or an option is none of its kind.
    """
    if every < 1 or not {*modes} <= {*MODES}:
        raise runner.BadAgent(f"modes is {modes!r}, every is {every}: give some of {', '.join(MODES)}, and at least 1")
    with tempfile.TemporaryDirectory(prefix="refold-sweep-", dir=_memory()) as root:
        given = Plan(**swept, without=without, pairs=pairs, seed=seed, reword=reword, root=Path(root).resolve())
        plan = dataclasses.replace(given, decide=on_question, message=message)
        return _swept(plan, only, modes, every, jobs, progress or (lambda *_: None))


def _swept(plan: Plan, only: str, modes: Sequence[Mode], every: int, jobs: int, progress: Progress) -> SweepReport:
    """What comes of one scenario, or of all of these modes."""
    baseline = plan.baseline()
    if only:
        found = plan.one(only, baseline)
    else:
        work = [(mode, first) for mode in modes for first in plan.firsts(mode, baseline, every)]
        found = list(_share(plan, baseline, work, jobs, progress))
    kinds = [one.mode for one in found] if only else modes
    rows = tuple(count_scenarios(mode, "+".join(sorted(plan.without)), found) for mode in kinds)
    return SweepReport(tuple(f"{at} {name}" for at, name in enumerate(baseline.points)), rows, tuple(found))


def _memory() -> str | None:
    """A directory in memory if the system has one: a simulated death loses nothing that is there."""
    place = Path("/dev/shm")  # noqa: S108 (looked for, never relied on)
    return str(place) if os.access(place, os.W_OK | os.X_OK) else None


def _share(plan: Plan, baseline: Baseline, work: Sequence[Job], jobs: int, progress: Progress) -> Iterator[Scenario]:
    """Every scenario of the work, in the order of the work."""
    progress(0, len(work))
    with contextlib.nullcontext() if jobs <= 1 else _forks(plan, baseline, jobs) as forks:
        each = forks.map(_one, work) if forks else (list(plan.scenarios(*job, baseline)) for job in work)
        for done, found in enumerate(each, 1):
            progress(done, len(work))
            yield from found


_mine: list[tuple[Plan, Baseline]] = []
"""What a forked process of a sweep inherited."""


@contextlib.contextmanager
def _forks(plan: Plan, baseline: Baseline, jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Forked processes, so that the factories may be closures."""
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), _inherit, (plan, baseline))
    try:
        yield pool
    except BrokenProcessPool as error:
        raise WorkerFailed("a process of the sweep ended before its share was done") from error
    finally:
        pool.shutdown(cancel_futures=True)


def _inherit(plan: Plan, baseline: Baseline) -> None:
    """Begin a forked process, which must not outlive its parent, whatever ends that."""
    _mine.append((plan, baseline))
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _one(job: Job) -> list[Scenario]:
    """The scenarios of a first point, in a forked process. Raises `WorkerFailed`, which every process can read."""
    plan, baseline = _mine[-1]
    try:
        return list(plan.scenarios(*job, baseline))
    except Exception as error:  # noqa: BLE001 (it may be of a kind that no other process can read)
        raise WorkerFailed(_own_frames(error)) from None


def _own_frames(error: Exception) -> str:
    """An error with the lines of the user's own code that it came through."""
    libraries = (sysconfig.get_path("stdlib"), *runner.__path__, *eventlog.__path__)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(libraries)]
    return "".join([*traceback.format_list(frames), *traceback.format_exception_only(error)])
