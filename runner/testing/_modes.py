"""The modes of a sweep, one row each: what goes wrong at the first point, and where that can matter.

To add a mode, name it in `Mode` and give it a row in `TROUBLES`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from runner.testing._environment import Attempt
from runner.testing._instrumented_agent import Reword
from runner.testing._points import is_begun, is_outside, may_leave_in_doubt, may_lose_a_reply
from runner.testing._scenario_run import ScenarioRun
from runner.testing._service_faults import ServiceFault, late_faults, service_faults
from runner.testing._verdict import Baseline

Mode = Literal["memory", "power", "service", "person", "model", "late", "cancel", "mail", "park", "lease"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)


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
        how: The options of a `ScenarioRun`, given the variant and what rewords a reply.
        shows: Whether a scenario shows what the mode is about; if not, the first point has no scenarios.
        every_resume: Whether to try a death in every resume, too, which the limit on resumes must end.
    """

    about: str
    at: Callable[[Sequence[str], int], bool] = lambda *_: True
    faults: Callable[[Attempt], Iterable[ServiceFault]] | None = None
    event: Callable[[ScenarioRun], object] | None = None
    goes_on: bool = False
    variants: Callable[[Baseline, Callable[[], int]], Sequence[str]] = lambda *_: ("",)
    label: str = ""
    how: Callable[[str, Reword], Mapping[str, Any]] = lambda *_: {}
    shows: Callable[[ScenarioRun], bool] = lambda _: True
    every_resume: bool = False


def _answers(variant: str, _: Reword) -> Mapping[str, Any]:
    """How the person answers; unless they refuse approvals, keys and lookups are taken away to have questions."""
    return {"answer_mode": variant, **({} if variant == "refuses" else {"without": ("keys", "lookups")})}


TROUBLES: Final[Mapping[Mode, Trouble]] = {
    "memory": Trouble("the process dies; also in every resume", every_resume=True),
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
        shows=lambda run: bool(run.environment.refused if run.answer_mode == "refuses" else run.environment.asked),
    ),
    "model": Trouble(
        "a reply is lost, and the model says something else",
        at=may_lose_a_reply,
        how=lambda _, reword: {"reword": reword},
        shows=lambda run: any(times > 1 for times in run.environment.replies.values()),
    ),
    "late": Trouble(
        "an effect happens after its attempt was given up, or the tool hangs until its timeout",
        faults=late_faults,
        goes_on=True,
    ),
    "cancel": Trouble("the run is cancelled, and its process ends in order", at=is_outside, event=ScenarioRun.cancel),
    "mail": Trouble(
        "a person parks or stops the run from another process; its own process may die of it at any point after that",
        event=ScenarioRun.say,
        goes_on=True,
        variants=lambda *_: ("park", "stop"),
        how=lambda variant, _: {"mail": variant},
    ),
    "park": Trouble("a person parks the run, it is resumed, and parked again", at=is_outside, event=ScenarioRun.say),
    "lease": Trouble(
        "a lease holds the run, as in a database; its process is frozen or cut off, and lives on beside the next one",
        at=is_begun,
        event=ScenarioRun.lose,
        variants=lambda *_: ("frozen", "cut"),
        how=lambda variant, _: {"loss": variant},
        shows=lambda run: run.lost,
    ),
}
