"""The sweep of a small triage job: thousands of simulated deaths, each with its own workspace and its own tracker.

The tracker is the real one, service and tables, asked in this process and kept in memory: what it answers is what it
answers over HTTP, and it costs no socket. Nothing of the job is written for the sweep but its task, `sweep`, whose
turns are few and whose tools are fast.
"""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import runner
from runner.triage import _code_tools, _issue_tools, _manners
from runner.triage._job import LIMITS
from runner.triage._manners import Manners
from runner.triage._task import Task
from runner.triage._tracker_store import Store

if TYPE_CHECKING:
    from runner import crashtest

TASK = "sweep"
_TODAY = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Scene:
    """A workspace and a tracker. `ignore_keys`: the tracker takes every request for a new one."""

    def __init__(self, folder: Path, *, ignore_keys: bool) -> None:
        """Lay it out in an empty folder."""
        import httpx  # noqa: PLC0415 (late: nothing else of the job needs it)

        from runner.triage._tracker import Idle, Tracker  # noqa: PLC0415 (the same)

        self.folder, self.task = folder, Task(TASK)
        shutil.copytree(self.task.original, folder / "workspace")
        manners = Manners(ignore_keys=ignore_keys)
        if ignore_keys:
            _manners.write(folder, manners)
        self.store = Store(Path(":memory:"), lambda: _TODAY)
        weakref.finalize(self, self.store.close)
        idle = Idle(float("inf"), lambda: 0.0)
        tracker = httpx.ASGITransport(Tracker(self.store, lambda: manners, idle, "swept"))
        self.connect = partial(httpx.AsyncClient, transport=tracker, base_url="http://tracker", trust_env=False)

    def effects(self) -> dict[str, int]:
        """How often each thing the job is to do has been done."""
        found = {"issue": 0, "comment": 0}
        for issue in self.store.search(""):
            found["issue"] += 1
            found["comment"] += len(self.store.comments_on(issue.id))
        for fix in self.task.expected.fixes:
            found["patch"] = (
                (self.folder / "workspace" / fix.patch.path).read_text(encoding="utf-8").count(fix.patch.new)
            )
            found["test"] = int((self.folder / "workspace" / fix.test).exists())
        return found

    @cached_property
    def tools(self) -> list[runner.Tool]:
        """The job's tools in this scene: they remember nothing, so all lives may have the same."""
        tools = (*_code_tools.tools(self.task), *_issue_tools.tools(self.folder, self.connect))
        named = {tool.name: tool for tool in tools}
        return [named[name] for name in self.task.tools]

    def agent(self) -> runner.Agent:
        """The job's agent in this scene, for one life."""
        return runner.Agent(
            model=Replies(self.task.recording),
            tools=self.tools,
            instructions=self.task.instructions,
            name=TASK,
            limits=LIMITS,
        )


class Replies:
    """A recording's replies by their turn, whatever was said before: a model asked again may have said otherwise."""

    name = "recorded"

    def __init__(self, recording: Path) -> None:
        """Read a recording."""
        self._recorded = runner.Recorded(recording)

    def bound(self, request: runner.Request) -> runner.Bound:
        """The recording's."""
        return self._recorded.bound(request)

    async def ask(self, request: runner.Request) -> runner.Reply:
        """The reply of this turn."""
        return self._recorded.replies[request.turn, request.purpose]


def sweep(
    *,
    modes: Sequence[crashtest.Mode] | None = None,
    without: Collection[Literal["keys", "lookups"]] = (),
    progress: crashtest.Progress | None = None,
    **options: Any,
) -> crashtest.Swept:
    """Sweep the job. `options` are those of `crashtest.sweep`: `pairs`, `seed`, `jobs`, `only`, `progress`.

    The tracker ignores keys where the job has none: without `keys`, and in mode `person`, which takes keys and lookups
    away to have questions at all.
    """
    from runner import crashtest  # noqa: PLC0415 (late: nothing else of the job needs it)

    swept = [
        crashtest.sweep(
            world=partial(Scene, ignore_keys=ignoring),
            agent=Scene.agent,
            task=TASK,
            effects=Scene.effects,
            modes=some,
            without=without,
            progress=progress,
            **options,
        )
        for ignoring, some in _parts(modes or crashtest.MODES, without)
    ]
    return crashtest.Swept(
        swept[0].points,
        tuple(row for one in swept for row in one.rows),
        tuple(scenario for one in swept for scenario in one.scenarios),
    )


def _parts(modes: Sequence[crashtest.Mode], without: Collection[str]) -> list[tuple[bool, tuple[crashtest.Mode, ...]]]:
    """The modes by whether the tracker ignores keys in them."""
    parts: dict[bool, tuple[crashtest.Mode, ...]] = {}
    for mode in modes:
        ignoring = mode == "person" or "keys" in without
        parts[ignoring] = (*parts.get(ignoring, ()), mode)
    return list(parts.items())
