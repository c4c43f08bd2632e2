"""Gauges: what a place holds now, read from the statuses of its runs."""

from collections import Counter
from datetime import UTC, datetime

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

import eventlog
import runner


def observe(runs: eventlog.Runs, *, meter_provider: MeterProvider | None = None) -> None:
    """Gauges over all runs of a place, read from their statuses at each collection.

    `refold.runs` counts runs by phase; `refold.questions.open` counts open questions, and `refold.questions.oldest` is
    for how many seconds the run that waits longest has waited for a person.

    Args:
        runs: Where the runs are: a path, a URL, or a store.
        meter_provider: Where metrics go; the global one by default.
    """
    store, found = eventlog.store(runs), list[runner.RunInfo]()

    def statuses() -> list[runner.RunStatus]:
        found[:] = runner.list_runs(store, before=found)  # each gauge of a collection reads on from the one before
        return [info.status for info in found if info.status is not None]

    def phases(_: CallbackOptions) -> list[Observation]:
        return [Observation(n, {"refold.phase": phase}) for phase, n in Counter(s.phase for s in statuses()).items()]

    def unanswered(_: CallbackOptions) -> list[Observation]:
        return [Observation(sum(len(status.open_questions) for status in statuses()))]

    def oldest(_: CallbackOptions) -> list[Observation]:
        now = datetime.now(UTC)
        waits = [(now - status.asked).total_seconds() for status in statuses() if status.asked is not None]
        return [Observation(max(waits, default=0.0))]

    meter = metrics.get_meter("refold", meter_provider=meter_provider)
    meter.create_observable_gauge("refold.runs", [phases], "{run}", "Runs, by phase.")
    meter.create_observable_gauge("refold.questions.open", [unanswered], "{question}", "Questions without an answer.")
    meter.create_observable_gauge("refold.questions.oldest", [oldest], "s", "How long the oldest of them waits.")
