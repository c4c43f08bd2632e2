"""The job under death: simulated at every point of a small run, and real SIGKILL at a sample of them or at random.

In the sweep each death has its own workspace and its own tracker. That is the real one, service and tables, asked in
this process and kept in memory: what it answers is what it answers over HTTP, and it costs no socket. Nothing of the
job is written for the sweep but its task, `sweep`, whose turns are few and whose tools are fast. The real kills have
real processes, real flushes, a real workspace, and the tracker over HTTP.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec

import runner
from runner import testing
from runner.triage._job import Job
from runner.triage._tracker_process import kill
from runner.triage._tracker_store import Comment, Issue, Row, Store, stored
from runner.triage._world import TrackerFaults, set_faults

TASK = "sweep"
LARGER = ("m1-done-after-delete", "batch")
UNLIMITED = runner.Limits(turns=1_000, dollars=10_000.0, resumes=10_000)


class Place:
    """The job's world in a folder, opened by whichever process works in it; its run is in `runs` beside that."""

    def __init__(self, folder: Path, task: str = TASK, **options: Any) -> None:
        """Lay it out unless it is there. `options` are those of `Job.of`."""
        self.job = Job.of(task, folder.parent / "runs", folder, **({"approve": "off"} | options))
        if not self.job.world.workspace.exists():
            self.job.world.lay(self.job.task)

    def agent(self) -> runner.Agent:
        return self.job.agent()

    def rows(self, kind: type[Row]) -> list[Row]:
        """All rows of a kind in the tracker's memory."""
        return stored(self.job.world.tracker, kind)

    def effects(self) -> Counter[str]:
        """How often each thing the job is to do has been done: in the tracker, and in the workspace."""
        done = Counter(f"issue {issue.cause}" for issue in self.rows(Issue))
        done += Counter(f"comment on {one.issue}: {one.text}" for one in self.rows(Comment))
        for fix in self.job.task.expected.fixes:
            patched = (self.job.world.workspace / fix.patch.path).read_text(encoding="utf-8")
            done[f"patch {fix.crash}"] = patched.count(fix.patch.new)
            done[f"test {fix.crash}"] = int((self.job.world.workspace / fix.test).exists())
        return done

    def end_tracker(self) -> None:
        """End the world's tracker by SIGKILL, if it has one: the next life has to start it before it can ask."""
        kill(self.job.world.path)

    def failures(self) -> Iterator[str]:
        return (str(outcome) for outcome in self.job.check("killed") if not outcome.ok)


def killed(points: int = 30, **options: Any) -> testing.SweepReport:
    """Kill the task `sweep` at a sample of its points, once and twice, and count. See `testing.kill_sweep`.

    A scenario takes a second or so; all of this lies in `TMPDIR`. `options` are `seed`, `only` and `progress`.
    """
    return testing.kill_sweep(environment=Place, points=points, **_done_by(TASK), **options)


def random_kills(
    seconds: float = 60.0, *, progress: Callable[[float], None] | None = None, **options: Any
) -> list[testing.Row]:
    """Kill each larger task's processes, its tracker's or both for its share of `seconds`. See `testing.random_kills`.

    `options` are `seed` and `failed`.

    Returns:
        A row for each task. A run that fails one of the task's checks is a failure, too.
    """
    began = time.monotonic()
    rows = []
    for task in LARGER:
        row = testing.random_kills(
            environment=partial(Place, task=task, limits=UNLIMITED),
            seconds=seconds / len(LARGER),
            check=Place.failures,
            progress=lambda _: progress(time.monotonic() - began) if progress else None,
            **_done_by(task),
            **options,
        )
        rows.append(msgspec.structs.replace(row, mode=f"random {task}"))
    return rows


def _done_by(task: str) -> dict[str, Any]:
    """What both kinds of kills take of a task."""
    import httpx  # noqa: F401, PLC0415 (late, as in the tools; here, so that no life has to import it)

    return {"agent": Place.agent, "task": task, "effects": Place.effects, "after_death": Place.end_tracker}


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
            set_faults(folder, faults)
        self.store = Store(Path(":memory:"), lambda: _TODAY)
        tracker = httpx.ASGITransport(Tracker(self.store, lambda: faults))
        connect = partial(httpx.AsyncClient, transport=tracker, base_url="http://127.0.0.1", trust_env=False)
        model = testing.RecordedModel(self.job.task.recording, strict=False)
        self._agent = self.job.agent(model, connect)

    def close(self) -> None:
        """Let go of the tracker's tables; the sweep calls this when the scenario is over."""
        self.store.close()

    def agent(self) -> runner.Agent:
        """The job's agent, which remembers nothing, so all lives may have the same."""
        return self._agent

    def rows(self, kind: type[Row]) -> list[Row]:
        return self.store.find(kind)


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
