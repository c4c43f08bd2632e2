"""Plays one scenario from start to end: crash, resume, finish.

After the last death nothing disturbs the run, so whatever is wrong at the end went wrong before.
"""

import asyncio
import math
import threading
from collections.abc import Coroutine, Sequence
from typing import Any, Final

import eventlog
import replay
import runner
from eventlog.simdisk import Killed, Machine, Process
from replay.events import AttemptMarked, ModelAsked, ReplySaved, ResultRecorded
from runner.testing._crash_point_disk import CrashPointDisk, RoutedDisk
from runner.testing._history import RUN, RUNS, events, images
from runner.testing._instrumented_agent import Instruments
from runner.testing._person import Person
from runner.testing._points import CrashPoints
from runner.testing._virtual import Threads, VirtualClock, VirtualLoop
from runner.testing._world import World

REBOOT: Final = 1.0
"""Virtual seconds between a death and the next process; where leases hold the run, at least until they end."""
_MOST_LIVES: Final = 24
_LINGER: Final = 0.02
_FIRST_PID: Final = 1000
Came = tuple[str, replay.State, Exception | None]
"""How a process ended, what the run was then, and what was raised."""


def play(world: World, kills: Sequence[int] = (), *, happens: Sequence[int] = ()) -> World:
    """Run processes until the run ends.

    Args:
        world: What they run in; it is given back.
        kills: The point at which each process dies.
        happens: The point of each process at which the world's `event` happens.
    """
    number, time, beside = 0, world.time, list[threading.Thread]()
    for _ in range(_MOST_LIVES):
        dies, event = (points[number] if number < len(points) else None for points in (kills, happens))
        beside += live(world, number, dies, event)
        if world.how == "dead" and number == 0 and world.cut is not None:
            world.machine = Machine(images(world.machine, world.seed)[world.cut])
        if world.how == "dead":
            _note_death(world)
            time.wait(max(time.now + REBOOT, world.leases.expire() if world.leases is not None else 0.0))
            number += 1
        elif world.how == "paused":
            number += _answer(world)
        else:
            break
    while any(process.is_alive() for process in beside):
        time.wait(math.inf)
    if world.late:
        _in_a_loop(world, _let_late_effects_happen(world))
    return world


def dead_at(world: World, kill: int) -> Machine:
    """The machine after the first process died at a point."""
    live(world, 0, kill)
    while world.how == "paused":
        _answer(world)
        live(world, 0, kill)
    return world.machine


def live(world: World, number: int, kill: int | None, happens: int | None = None) -> list[threading.Thread]:
    """Run one process, whose points are those of this number; the thread of it where it may live on beside the next."""
    points = CrashPoints(kill, happens, lambda: world.event and world.event(world))
    if number == len(world.passed):
        world.passed.append([])
    points.passed = world.passed[number]
    world.time.lingers = _LINGER if world.fault is not None and world.fault.in_thread else 0.0
    process = RoutedDisk(Process(world.machine, _FIRST_PID + world.lives), world.folder, points)
    world.disk = world.held(process)
    world.lives += 1
    disk = CrashPointDisk(world.disk, points)
    if not world.loss or happens is None:
        world.how, world.state, world.error = _end(world, points, process, disk)
        return []
    came: list[Came] = []
    world.lost = False
    thread = world.time.beside(lambda: came.append(_end(world, points, process, disk)))
    world.time.wait(math.inf)
    world.how, world.state, world.error = ("dead", world.state, None) if world.lost else came[0]
    return [thread]


def _end(world: World, points: CrashPoints, process: RoutedDisk, disk: CrashPointDisk) -> Came:
    """One process from its start to its end, and what it came to."""
    how, state, problem = "", world.state, None
    try:
        outcome = _in_a_loop(world, _go(world, points, eventlog.Directory(RUNS, disk=disk)))
        how, state = "paused" if isinstance(outcome, runner.Paused) else "finished", outcome.state
    except Killed:
        pass
    except (asyncio.CancelledError, runner.errors.Parked):
        how = "dead"
    except Exception as error:  # noqa: BLE001 (an error of the process is the end of the scenario)
        how, problem = f"{type(error).__name__}: {error}", error
    process.die()
    return "dead" if points.dead else how, state, problem


def _in_a_loop(world: World, body: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(world.time)) as loop:
        return loop.run(body)


async def _go(world: World, points: CrashPoints, runs: eventlog.Directory) -> runner.Outcome:
    world.task = asyncio.current_task()
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # a dead process reports nothing
    threads = Threads(world.time)
    for late in world.late:
        late.schedule()
    agent = Instruments(world, points, threads).agent()
    options: dict[str, Any] = {
        "runs": runs,
        "on_question": Person(world, points).answer,
        "clock": VirtualClock(world.time),
    }
    try:
        if RUN in runs.runs():
            return await runner.resume(RUN, agent, **options)
        options |= {"inputs": world.inputs.inputs, "workspace": world.folder / "workspace"}
        return await runner.start(agent, world.inputs.task, run=RUN, **options)
    finally:
        threads.end()


def _note_death(world: World) -> None:
    marked, history = dict[str, bool](), list[replay.AnyEvent]()
    try:
        found = world.family()
        world.saved = {path: _turns(each) for path, each in found.values()}
        history = events(found)
    except (eventlog.LogError, replay.ReplayError) as error:
        world.problems.append(f"after a death the log can't be read: {error}")
    for event in history:
        match event:
            case AttemptMarked() if event.effect != "reads":
                marked[event.call] = True
            case ResultRecorded():
                marked[event.call] = False
    world.deaths.append(tuple(call for call, in_doubt in marked.items() if in_doubt))


def _turns(history: Sequence[replay.AnyEvent]) -> int:
    turns, purpose = 0, "turn"
    for event in history:
        if isinstance(event, ModelAsked):
            purpose = event.purpose
        turns += isinstance(event, ReplySaved) and purpose == "turn"
    return turns


def _answer(world: World) -> bool:
    """Settle what the paused run waits for, from outside the run; otherwise let its approvals lapse.

    Returns whether anything was settled.
    """
    open_ = [question for question in world.state.waiting if question.kind == "settle"]
    world.left = world.left or bool(open_)
    for question in open_:
        answer = Person(world, CrashPoints()).settles(question)
        assert answer.verdict in ("rerun", "done")  # so that it fits `settle`
        runner.settle(RUN, question.id, answer.who, answer.verdict, answer.text, runs=world.others())
    if not open_ and world.state.due is not None:
        ahead = (world.state.due - VirtualClock(world.time).wall()).total_seconds()
        world.time.now += max(0.0, ahead)
    return bool(open_)


async def _let_late_effects_happen(world: World) -> None:
    for late in world.late:
        late.schedule()
    await world.landed()
