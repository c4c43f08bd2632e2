"""A Celery application that delivers its tasks at least once, and often twice: late acknowledgements, a short patience.

Its processes are told by the environment where broker, runs and effects are.
"""

import os
from typing import Any

import celery  # type: ignore[import-untyped]

import runner
from tests.service import scenes
from tests.support import stage

RUNS, EFFECTS = os.environ.get("RUNS", "runs"), os.environ.get("EFFECTS", "effects")


def came_again(run: str) -> bool:
    """Whether the first run's task was delivered twice; until then it does not end, and its patience does."""
    return run != "r-0" or scenes.effects_of(f"{EFFECTS}-delivered").count(run) > 1


agent = scenes.acting(EFFECTS, lasts=0.3, timeout=600, may_end=came_again)
app = celery.Celery("shop", broker=os.environ.get("BROKER", "memory://"))
PATIENCE = {
    "visibility_timeout": 1,
    "unacked_mutex_expire": 2,
    "polling_interval": 0.1,
    "unacked_restore_interval": 5,  # seconds between two looks at what was not acknowledged
    "unacked_restore_throttle": 1,  # each look counts; without this every tenth does
}
app.conf.update(
    broker_transport_options=PATIENCE,
    broker_connection_retry_on_startup=True,
    worker_prefetch_multiplier=2,
)


@app.task(bind=True, acks_late=True, reject_on_worker_lost=True, max_retries=None)  # type: ignore[untyped-decorator]
def carry_on(self: Any, run: str) -> str | None:
    """The guide's task; each delivery of it is noted."""
    stage.note(f"{EFFECTS}-delivered", run)
    try:
        outcome = runner.resume_sync(run, agent, runs=RUNS, wait="return")
    except runner.RunLocked as locked:
        raise self.retry(exc=locked, countdown=1) from None
    match outcome:
        case runner.Finished(answer=answer):
            return str(answer)
        case runner.Waiting(until=until):
            raise self.retry(eta=until)
    return None
