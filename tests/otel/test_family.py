"""What belongs together in a trace: who began a run, its lives, its children and its forks, in whatever process."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan

import eventlog
import runner
from replay.events import RunStarted
from runner import otel
from tests.children import scenes as family
from tests.cli import agents
from tests.otel.test_otel import Seen, about, runs, seen
from tests.support import stage
from tests.support.disks import Quick

__all__ = ["runs", "seen"]


def links(span: ReadableSpan) -> set[int]:
    """The spans that a span is linked to."""
    return {link.context.span_id for link in span.links}


def ended(seen: Seen, name: str) -> list[ReadableSpan]:
    """The spans of a name, in the order in which they ended."""
    return [span for span in seen.exporter.get_finished_spans() if span.name == name]


def test_who_began_a_run_is_saved_with_it_and_linked_to_every_life_in_whatever_process(seen: Seen, runs: Path) -> None:
    """It is a fact about the run that no request to the model, and no digest, holds."""
    with seen.tracer.get_tracer("caller").start_as_current_span("request") as caller:
        runner.start_sync(agents.paying, "x", runs=runs, run="r", watch=seen.telemetry)
    runner.start_sync(agents.paying, "x", runs=runs, run="untraced")
    (begun,) = stage.events(runs, RunStarted)
    here = caller.get_span_context()
    assert begun.trace == f"00-{here.trace_id:032x}-{here.span_id:016x}-{here.trace_flags:02x}"
    traced, untraced = (runner.read_state(run, runs) for run in ("r", "untraced"))
    assert (traced.conversation, traced.definitions) == (untraced.conversation, untraced.definitions)
    assert {question.digest for state in (traced, untraced) for question in state.waiting} == {traced.waiting[0].digest}
    runner.approve("r", "1.0-approve", "ann", runs=runs)
    later = Seen(otel.Ids())
    runner.resume_sync("r", agents.paying, runs=runs, watch=later.telemetry)
    (first,), (second,) = (ended(one, "invoke_agent paying") for one in (seen, later))
    assert links(first) == {here.span_id}
    assert links(second) == {here.span_id, first.context.span_id}


def test_a_worker_saves_who_started_a_run_there(seen: Seen, runs: Path) -> None:
    """The run is made in a thread of its own."""

    async def main() -> None:
        async with runner.Worker([agents.plain], runs=runs, watch=seen.telemetry) as worker:
            with seen.tracer.get_tracer("caller").start_as_current_span("request"):
                await (await worker.start(agents.plain, "x", run="r")).outcome()

    asyncio.run(main())
    (life,), (caller,) = ended(seen, "invoke_agent plain"), ended(seen, "request")
    assert links(life) == {caller.context.span_id}
    (begun,) = stage.events(runs, RunStarted)
    assert f"{caller.context.span_id:016x}" in begun.trace


@pytest.mark.parametrize("context", [lambda _: "00-nonsense", lambda _: 3, lambda _: 1 / 0, None])
def test_a_watcher_that_says_nonsense_of_who_began_a_run_says_nothing(runs: Path, context: Any) -> None:
    """And ends no run."""

    class Watcher:
        def __call__(self, *_: object) -> None:
            pass

    watcher = Watcher()
    watcher.context = watcher.timed = context  # type: ignore[attr-defined] # what a watcher may have
    stage.finished(runner.start_sync(agents.plain, "x", runs=runs, run="r", watch=watcher))
    assert [begun.trace for begun in stage.events(runs, RunStarted)] == [""]


def test_a_child_run_goes_on_in_the_span_of_its_call_also_in_another_process(seen: Seen, runs: Path) -> None:
    """Parent and child are one trace; what rests has ended, and the next life goes on under the same call."""
    one, place = family.lead("ask me"), eventlog.Directory(runs)
    family.start(one, place, watch=seen.telemetry)
    (call,), (child,) = ended(seen, "execute_tool clerk"), ended(seen, "invoke_agent clerk")
    (parent,) = ended(seen, "invoke_agent lead")
    assert [span.parent.span_id for span in (call, child) if span.parent] == [
        parent.context.span_id,
        call.context.span_id,
    ]
    assert about(call)["refold.outcome"] == "rests"
    (name,) = family.children(place)
    assert about(call)["refold.child"] == about(child)["gen_ai.conversation.id"] == name
    runner.approve("p", runner.read_state("p", runs).waiting[0].id, "ann", runs=runs)
    later = Seen(otel.Ids())
    family.resume(one, place, watch=later.telemetry)
    (second,) = ended(later, "invoke_agent clerk")
    assert second.parent is not None
    assert second.parent.span_id == call.context.span_id
    assert child.context.span_id in links(second)
    assert [about(span)["refold.outcome"] for span in ended(later, "execute_tool clerk")] == ["ran"]
    spans = [*seen.exporter.get_finished_spans(), *later.exporter.get_finished_spans()]
    assert {span.context.trace_id for span in spans} == {parent.context.trace_id}


def test_a_fork_begins_a_trace_with_a_link_to_its_parents(seen: Seen, runs: Path) -> None:
    """Its parent's caller is none of its own."""
    with seen.tracer.get_tracer("caller").start_as_current_span("request"):
        runner.start_sync(agents.plain, "x", runs=runs, run="r", watch=seen.telemetry)
    runner.fork("r", at=3, runs=runs, new="f")
    later = Seen(otel.Ids())
    runner.resume_sync("f", agents.plain, runs=runs, watch=later.telemetry)
    (parent,), (fork,) = ended(seen, "invoke_agent plain"), ended(later, "invoke_agent plain")
    assert fork.context.trace_id != parent.context.trace_id
    assert (parent.context.trace_id, parent.context.span_id) in {
        (link.context.trace_id, link.context.span_id) for link in fork.links
    }
    assert len(fork.links) == 1
    assert about(fork)["refold.parent"] == "r"


def test_a_life_that_a_failed_save_ended_has_no_end_and_the_next_one_begins(seen: Seen, runs: Path) -> None:
    """In the same process: what was open then is not taken for the new life's."""

    class Full(Quick):
        room = True

        def write_some(self, fd: int, data: bytes | memoryview, offset: int) -> int:
            if not self.room and b'"attempt_marked"' in bytes(data):
                raise OSError(errno.EIO, "bad disk")
            return super().write_some(fd, data, offset)

    disk = Full()
    store = eventlog.Directory(runs, disk=disk)
    disk.room = False
    with pytest.raises(eventlog.LogError):
        runner.start_sync(agents.plain, "x", runs=store, run="r", watch=seen.telemetry)
    disk.room = True
    assert ended(seen, "invoke_agent plain") == []
    runner.resume_sync("r", agents.plain, runs=store, watch=seen.telemetry)
    (life,) = ended(seen, "invoke_agent plain")
    assert about(life)["refold.life"] == 2
