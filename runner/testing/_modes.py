"""The modes of a sweep, one row each: what goes wrong at the first point, and where that can matter.

To add a mode, name it in `Mode` and give it a row in `TROUBLES`.
"""

import contextlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import eventlog
import runner
from runner.testing._history import RUN
from runner.testing._inputs import Reword
from runner.testing._leased_disk import LeasedDisk
from runner.testing._points import is_begun, is_outside, may_leave_in_doubt, may_lose_a_reply
from runner.testing._service_faults import Attempt, ServiceFault, late_faults, service_faults
from runner.testing._verdict import Baseline
from runner.testing._world import World

Mode = Literal["memory", "power", "service", "person", "model", "late", "cancel", "mail", "park", "lease"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)


FROZEN: Final = 600.0
"""Virtual seconds that a frozen process sleeps after its lease's end: the next one has done its work by then."""


@dataclass(frozen=True)
class Trouble:
    """What a mode tries. Without `faults` and `event`, the process dies at the first point.

    Attributes:
        about: What goes wrong, in words.
        at: Whether it can matter at a point, given all points and its number.
        faults: The faults of one attempt of a call; they are the first points then.
        event: What happens at the first point instead of a death.
        goes_on: Whether the process goes on after that. Then the second crash falls in the same process, otherwise in
            the next one.
        variants: The variants of a first point, given the undisturbed run and a count of the images of a power cut.
        label: What stands before a variant in a scenario's name.
        how: What a `World` is disturbed by, given the variant and what rewords a reply.
        shows: Whether a scenario shows what the mode is about; if not, the first point has no scenarios.
    """

    about: str
    at: Callable[[Sequence[str], int], bool] = lambda *_: True
    faults: Callable[[Attempt], Iterable[ServiceFault]] | None = None
    event: Callable[[World], object] | None = None
    goes_on: bool = False
    variants: Callable[[Baseline, Callable[[], int]], Sequence[str]] = lambda *_: ("",)
    label: str = ""
    how: Callable[[str, Reword], Mapping[str, Any]] = lambda *_: {}
    shows: Callable[[World], bool] = lambda _: True


def _cancel(world: World) -> None:
    assert world.task is not None
    world.task.cancel()


def _say(world: World) -> None:
    """Have a person park or stop the run from another process, if there is one that goes on."""
    with contextlib.suppress(eventlog.NoSuchRun, eventlog.NotARunsDirectory, runner.RunError):
        receipt = (runner.park if world.mail == "park" else runner.stop)(RUN, "mae", runs=world.others())
        if not receipt.written:  # otherwise nobody held the run, and whoever resumes it now carries it on
            world.said.append(receipt.state.seq)


def _lose(world: World) -> None:
    """Have the run's process lose its leases: from here on it is cut off, or frozen until another has taken over.

    Between the last check and an effect no process can notice that it was frozen, so in a tool none is.
    """
    assert isinstance(world.disk, LeasedDisk)
    assert world.leases is not None  # there are some where they can be lost
    if world.loss == "frozen" and world.passed[-1][-1].startswith("tool"):
        return
    world.lost = True
    ends = world.leases.expire()
    world.time.wake(threading.main_thread(), ends)
    if world.loss == "cut":
        world.disk.is_cut = True
    else:
        world.time.wait(ends + FROZEN)


def _answers(variant: str, _: Reword) -> Mapping[str, Any]:
    """How the person answers; unless they refuse approvals, keys and lookups are taken away to have questions."""
    return {"answer_mode": variant, **({} if variant == "refuses" else {"without": ("keys", "lookups")})}


TROUBLES: Final[Mapping[Mode, Trouble]] = {
    "memory": Trouble("the process dies"),
    "power": Trouble(
        "the power fails, and the disk keeps what it may",
        variants=lambda _, images: [f"{at}" for at in range(images())],
        label="image ",
        how=lambda variant, _: {"cut": int(variant)},
    ),
    "service": Trouble("the service fails, a reply is lost, the lookup is down", faults=service_faults, goes_on=True),
    "person": Trouble(
        "no keys, no lookups, and the person is wrong, or gone; or, with them, refuses",
        at=may_leave_in_doubt,
        variants=lambda baseline, _: ("wrong", "nobody", *(["refuses"] if baseline.approved else [])),
        how=_answers,
        shows=lambda world: bool(world.refused if world.answer_mode == "refuses" else world.asked),
    ),
    "model": Trouble(
        "a reply is lost, and the model says something else",
        at=may_lose_a_reply,
        how=lambda _, reword: {"reword": reword},
        shows=lambda world: world.paid_twice > 0,
    ),
    "late": Trouble(
        "an effect happens after its attempt was given up, or the tool hangs until its timeout",
        faults=late_faults,
        goes_on=True,
    ),
    "cancel": Trouble("the run is cancelled, and its process ends in order", at=is_outside, event=_cancel),
    "mail": Trouble(
        "a person parks or stops the run from another process; its own process may die of it at any point after that",
        event=_say,
        goes_on=True,
        variants=lambda *_: ("park", "stop"),
        how=lambda variant, _: {"mail": variant},
    ),
    "park": Trouble("a person parks the run, it is resumed, and parked again", at=is_outside, event=_say),
    "lease": Trouble(
        "a lease holds the run, as in a database; its process is frozen or cut off, and lives on beside the next one",
        at=is_begun,
        event=_lose,
        variants=lambda *_: ("frozen", "cut"),
        how=lambda variant, _: {"loss": variant},
        shows=lambda world: world.lost,
    ),
}
