"""A small job with every kind of effect, and a sweep that kills it at every point where a death can land.

A *point* is a saved line, the beginning and the end of each tool, ask, lookup and question, and every change of a name
in the file system (an audit event: a rename, a file made or removed), those of the log's own opening included. The
truth is kept outside of the run, in files that the tools append to.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import eventlog
import replay
import runner
import runner.testing
from replay.events import ResultRecorded
from tests.support import stage

RUN = "job"
NAMES = {"os.rename", "os.remove", "os.mkdir", "open"}
EFFECTS = ("post", "send", "fax")


class Points:
    """Counts points and dies at the nth; with n = 0 it only counts."""

    def __init__(self, root: Path, n: int) -> None:
        self.passed: list[str] = []
        self._n = n
        self._root = str(root)
        sys.addaudithook(self._audit)

    def __call__(self, name: str) -> None:
        """Pass a point."""
        self.passed.append(name)
        if len(self.passed) == self._n:
            os.kill(os.getpid(), signal.SIGKILL)

    def _audit(self, event: str, given: tuple[Any, ...]) -> None:
        if event in NAMES and isinstance(given[0], str | Path) and not (event == "open" and given[1] == "a"):
            path = str(given[0])
            if path.startswith(self._root) or "/" not in path:  # within an open directory
                self(f"{event} {Path(path).name}")


def tools(root: Path, point: Points) -> list[runner.Tool]:
    """The job's tools; what they do is written under `root`."""

    def happened(name: str, call: runner.Call) -> bool:
        path = root / name
        return path.exists() and f"{call.key}\n" in path.read_text()

    def act(name: str, call: runner.Call) -> None:
        point(f"{name} begins")
        stage.note(root / name, call.key)
        point(f"{name} ends")

    @runner.tool(effect="reads")
    def look(x: int) -> int:
        point("look begins")
        return x

    @runner.tool(effect="idempotent")
    def note(text: str, call: runner.Call) -> str:
        point("note begins")
        call.workspace.write_text("notes/a.txt", text)
        point("note has written once")
        call.workspace.write_text("notes/b.txt", text)
        point("note ends")
        return "noted"

    @runner.tool(effect="keyed", key_ttl=timedelta(hours=1), approval=True)
    async def post(call: runner.Call) -> str:
        if not happened("post", call):  # the service knows the key
            act("post", call)
        return "posted"

    @runner.tool
    def send(call: runner.Call) -> str:
        act("send", call)
        return "sent"

    @send.lookup(visible_within=0)
    def sent(call: runner.Call) -> runner.Found | runner.Missing:
        point("lookup begins")
        found = happened("send", call)
        point("lookup ends")
        return runner.Found("sent") if found else runner.Missing()

    @runner.tool
    async def fax(call: runner.Call) -> str:
        act("fax", call)
        return "faxed"

    return [look, note, post, send, fax]


def build(root: Path, point: Points) -> runner.Agent:
    """The job's agent."""

    class Model(runner.testing.ScriptedModel):
        async def ask(self, request: runner.Request) -> runner.Reply:
            stage.note(root / "asks", f"{request.turn}")
            point("ask goes out")
            reply = await super().ask(request)
            point("reply came in")
            return reply

    script: list[runner.Reply | str] = [
        runner.testing.tool_calls(("look", {"x": 1}), ("look", {"x": 2}), ("note", {"text": "hello"})),
        runner.testing.tool_calls(("post", {}), ("send", {})),
        runner.testing.tool_calls(("fax", {}), ("look", {"x": 3})),
        "all done",
    ]
    return runner.Agent(name="agent", model=Model(script), tools=tools(root, point), limits=runner.Limits(resumes=5))


def person(root: Path, point: Points) -> runner.OnQuestion:
    """Somebody who says yes, and who answers the ladder by looking whether it happened."""

    def answer(question: runner.Question) -> runner.Answer:
        point("question is put")
        if question.kind == "approve":
            return runner.Answer("approve", "a person")
        key = runner.key(runner.read_state(RUN, root / "runs").uid, question.call)
        path = root / question.tool
        done = path.exists() and f"{key}\n" in path.read_text()
        return runner.Answer("done", "a person", "faxed") if done else runner.Answer("rerun", "a person")

    return answer


def live(root: Path, n: int) -> list[str]:
    """Play one life of the job, which dies at point `n`; the points it passed, when it did not die."""
    workspace, runs = root / "workspace", root / "runs"
    workspace.mkdir(parents=True, exist_ok=True)
    point = Points(root, n)
    agent, ask = build(root, point), person(root, point)

    def saved(_state: runner.State, events: Sequence[replay.Event]) -> None:
        point("line " + " ".join(type(event).__name__ for event in events))

    try:
        outcome = runner.resume_sync(RUN, agent, runs=runs, on_question=ask, watch=saved)
    except eventlog.NoSuchRun:
        outcome = runner.start_sync(agent, "job", runs=runs, run=RUN, workspace=workspace, on_question=ask, watch=saved)
    assert isinstance(outcome, runner.Finished), outcome
    return point.passed


def wrong(root: Path, deaths: int) -> list[str]:
    """What is not as it must be after the job has finished, whatever deaths it had."""
    state = runner.read_state(RUN, root / "runs")
    asks = Counter((root / "asks").read_text().split())
    counts = {name: (root / name).read_text().splitlines() for name in EFFECTS}
    events = [replay.decode(raw) for line in eventlog.store(root / "runs").read(RUN).lines for raw in line.events]
    had = Counter(event.call for event in events if isinstance(event, ResultRecorded))
    again = sum(asks.values()) - state.turns
    left = [path.name for path in (root / "workspace").rglob("*") if path.name.startswith(".")]
    files = [(root / "workspace/notes" / name).read_text() for name in ("a.txt", "b.txt")]
    checks = {
        f"phase {state.phase}, answer {state.answer}": (state.phase, state.answer) == ("done", "all done"),
        f"open calls {state.in_doubt}": not state.in_doubt,
        f"results {had}": had == Counter({f"{turn}.{i}": 1 for turn, n in ((1, 3), (2, 2), (3, 2)) for i in range(n)}),
        f"effects {counts}": all(len(keys) == 1 for keys in counts.values()),
        f"asks {asks}, of them lost {state.spent.lost_asks}": 0 <= again <= state.spent.lost_asks <= deaths,
        f"workspace {left} {files}": not left and files == ["hello", "hello"],
        "the log does not verify": eventlog.store(root / "runs").verify(RUN).ok,
    }
    return [what for what, fine in checks.items() if not fine]


def child(root: Path, n: int) -> int:
    """Play one life in a process of its own; its exit status, minus the signal's number for a death."""
    pid = os.fork()
    if pid == 0:
        try:
            live(root, n)
        except BaseException as error:  # noqa: BLE001 (it is said below, by the status)
            print(f"point {n}: {error!r}")  # noqa: T201 (the scene's output)
            sys.stdout.flush()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def swept(root: Path, first: int, step: int, again: int = 0) -> dict[str, Any]:
    """Kill the job at points `first`, `first + step`, ... of a fresh start, until one lies beyond its end.

    `again`: each resume is killed too, at one of its first `again` points, and resumed once more.
    """
    found: dict[str, list[str]] = {}
    n = first
    while True:
        place = root / f"{n}"
        status = child(place, n)
        if status == 0:
            return {"points": n - 1, "wrong": found}
        problems = [] if status == -signal.SIGKILL else [f"status {status}"]
        deaths = 1
        if again and child(place, 1 + n % again) == -signal.SIGKILL:
            deaths += 1
        status = child(place, 0)
        problems += [f"resumed with status {status}"] if status else wrong(place, deaths)
        if problems:
            found[f"{n}"] = problems
        n += step
