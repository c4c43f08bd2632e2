"""The sweep of a small triage job: thousands of simulated deaths, each with its own workspace and its own tracker.

The tracker is the real one, service and tables, asked in this process and kept in memory: what it answers is what it
answers over HTTP, and it costs no socket. Nothing of the job is written for the sweep but its task, `sweep`, whose
turns are few and whose tools are fast.
"""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

import runner
from runner import testing
from runner.triage import _tracker_faults
from runner.triage._real_kills import TASK, Place
from runner.triage._tracker_faults import TrackerFaults
from runner.triage._tracker_store import Comment, Issue, Store

_TODAY = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Scene(Place):
    """A workspace and a tracker in memory. `ignore_keys`: the tracker takes every request for a new one."""

    def __init__(self, folder: Path, *, ignore_keys: bool) -> None:
        """Lay it out in an empty folder."""
        import httpx  # noqa: PLC0415 (late: nothing else of the job needs it)

        from runner.triage._tracker import Tracker  # noqa: PLC0415 (the same)

        super().__init__(folder, approve="ask")
        faults = TrackerFaults(ignore_keys=ignore_keys)
        if ignore_keys:
            _tracker_faults.write(folder, faults)
        self.store = Store(Path(":memory:"), lambda: _TODAY)
        tracker = httpx.ASGITransport(Tracker(self.store, lambda: faults, str))
        connect = partial(httpx.AsyncClient, transport=tracker, base_url="http://127.0.0.1", trust_env=False)
        model = testing.RecordedModel(self.job.task.recording, strict=False)
        self._agent = self.job.agent(model, connect)

    def close(self) -> None:
        """Let go of the tracker's tables; the sweep calls this when the scenario is over."""
        self.store.close()

    def agent(self) -> runner.Agent:
        """The job's agent, which remembers nothing, so all lives may have the same."""
        return self._agent

    def issues(self) -> list[Issue]:
        return self.store.search("")

    def comments(self) -> list[Comment]:
        return [comment for issue in self.issues() for comment in self.store.comments_on(issue.id)]


def sweep(
    *,
    modes: Sequence[testing.Mode] = testing.MODES,
    without: Collection[Literal["keys", "lookups"]] = (),
    **options: Any,
) -> testing.SweepReport:
    """Sweep the job. `options` are those of `testing.sweep`: `pairs`, `seed`, `jobs`, `only`, `progress`.

    The tracker ignores keys where the job has none: without `keys`, and in mode `person`, which takes keys and lookups
    away to have questions at all.
    """
    parts: dict[bool, list[testing.Mode]] = {}
    for mode in modes:
        parts.setdefault(mode == "person" or "keys" in without, []).append(mode)
    return testing.SweepReport.of(
        testing.sweep(
            environment=partial(Scene, ignore_keys=ignoring),
            agent=Scene.agent,
            task=TASK,
            effects=Scene.effects,
            modes=some,
            without=without,
            **options,
        )
        for ignoring, some in parts.items()
    )
