"""Somebody outside is told of every open question, at least once, signed, and under a key that is the question's."""

import asyncio
import hashlib
import hmac
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

import eventlog
import runner
import runner.testing
from runner._cli._io import notify
from runner._cli._io.notify import SECRET, Notifier
from tests.cli import agents, scenes
from tests.cli.conftest import Agent, Refold, environment
from tests.support import ROOT, stage


class Hook:
    """A server that is told: what came, and the statuses that it answers with, in turn; then 204."""

    def __init__(self) -> None:
        self.came: list[tuple[str, dict[str, str], bytes]] = []
        self.statuses: list[int] = []
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.came.append((self.path, dict(self.headers), body))
                self.send_response(hook.statuses.pop(0) if hook.statuses else 204)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                return

        self._server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.target = f"webhook:http://127.0.0.1:{self._server.server_port}/hook?room=1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def end(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    """A server that is told, and the secret that both know."""
    monkeypatch.setenv(SECRET, "shared")
    served = Hook()
    yield served
    served.end()


def rounds(runs: Path | str, *targets: str, count: int = 1) -> None:
    """What a worker that begins does about its targets, so many times."""

    async def main() -> None:
        notifier = Notifier(targets, str(runs))
        for _ in range(count):
            notifier.round()

    asyncio.run(main())


STORES = ["a directory", pytest.param("a database", marks=pytest.mark.full)]


@pytest.mark.parametrize("kind", STORES)
def test_what_was_told_is_noted_with_the_runs_and_until_then_each_worker_tells_again(
    runs: Path, hook: Hook, request: pytest.FixtureRequest, kind: str
) -> None:
    """In every store: a worker that begins tells of what no worker was told that it was taken, and of nothing else."""
    place = str(runs) if kind == "a directory" else str(request.getfixturevalue("database"))
    runner.start_sync(agents.paying, "x", runs=place, run="one")
    hook.statuses = [500, 503]
    for taken in (1, 2, 3, 3, 3):
        rounds(place, hook.target)
        assert len(hook.came) == taken
    runner.start_sync(agents.paying, "x", runs=place, run="two")
    rounds(place, hook.target, "command:true")
    assert len(hook.came) == 4
    rounds(place, hook.target, "command:true", count=2)
    assert len(hook.came) == 4


def test_a_webhook_gets_a_signed_question_once_and_a_later_worker_knows(runs: Path, hook: Hook, refold: Refold) -> None:
    """Whoever has the secret can tell that it is ours, and how old it is; the rest is as in the inbox, times too."""
    scenes.asking(runs)
    rounds(runs, hook.target, count=2)
    rounds(runs, hook.target)
    ((path, headers, body),) = hook.came
    assert path == "/hook?room=1"
    stamped = f"{headers['X-Refold-Timestamp']}.".encode() + body
    assert headers["X-Refold-Signature"] == f"sha256={hmac.new(b'shared', stamped, hashlib.sha256).hexdigest()}"
    told = json.loads(body)
    assert headers["Idempotency-Key"] == told["key"]
    assert (told["run"], told["id"], told["kind"], told["tool"]) == ("asking-run", "1.0-approve", "approve", "pay")
    assert json.loads(told["arguments"]) == {"amount": 7, "to": "ann"}
    (listed,) = refold("inbox", "--json").json
    assert {name: listed[name] for name in told.keys() & listed.keys()} == {
        name: told[name] for name in listed.keys() - {"commands"}
    }


@pytest.mark.fault("files that grow with every question that ever was")
@pytest.mark.parametrize("kind", STORES)
def test_what_was_told_is_forgotten_once_the_question_is_closed_and_never_while_a_run_can_not_be_read(
    runs: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    """Also what another worker told others; a run that can't be read may ask something."""
    place = str(runs) if kind == "a directory" else str(request.getfixturevalue("database"))
    store = eventlog.store(place)
    for run in ("one", "two"):
        runner.start_sync(agents.paying, "x", runs=place, run=run)
    rounds(place, "command:true", "command:true 2")
    both = store.notes()
    assert len(both) == 4
    runner.approve("one", "1.0-approve", "ann", runs=place)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(runner, "read_state", unreadable)
        rounds(place, "command:true")
    assert store.notes() == both
    rounds(place, "command:true")
    assert len(store.notes()) == 2
    assert store.notes() < both


def unreadable(run: str, runs: eventlog.Runs) -> runner.State:
    """A server that does not answer for a moment."""
    raise eventlog.DiskFailed(str(runs), run)


@pytest.mark.fault("server hangs")
@pytest.mark.parametrize("status", [500, 302, 404])
def test_what_nobody_took_is_told_again_under_the_same_key(runs: Path, hook: Hook, status: int) -> None:
    """By the next worker too; a redirect is followed by nobody. The log says why it was not taken."""
    scenes.asking(runs)
    hook.statuses = [status, status]
    with structlog.testing.capture_logs() as warned:
        rounds(runs, hook.target, count=2)
    assert [one["why"] for one in warned] == [f"status {status}"] * 2
    rounds(runs, hook.target, count=2)
    assert len(hook.came) == 3
    assert len({headers["Idempotency-Key"] for _, headers, _ in hook.came}) == 1
    assert {path for path, _, _ in hook.came} == {"/hook?room=1"}


def test_a_question_that_was_answered_is_told_to_nobody(runs: Path, hook: Hook) -> None:
    """And each of two questions has a key of its own."""
    scenes.asking(runs)
    runner.start_sync(agents.paying_twice, "pay", runs=runs, run="two")
    runner.approve("asking-run", "1.0-approve", "ann", runs=runs)
    rounds(runs, hook.target)
    assert {json.loads(body)["run"] for _, _, body in hook.came} == {"two"}
    assert len({headers["Idempotency-Key"] for _, headers, _ in hook.came}) == len(hook.came) == 2


@pytest.mark.fault("a secret in a line of a log collector")
def test_no_secret_is_told(runs: Path, hook: Hook) -> None:
    """Neither the run's nor the one that signs."""
    secret = "sk-ant-api03-" + "a1B2" * 20
    script = [runner.testing.tool_calls(("pay", {"amount": 1, "to": secret})), "done"]
    stage.start(script, agents.pay, runs=runs)
    rounds(runs, hook.target)
    ((_, headers, body),) = hook.came
    assert secret.encode() not in body
    assert "shared" not in str(headers)


def test_a_command_is_told_on_its_stdin_until_it_ends_well(runs: Path, tmp_path: Path) -> None:
    """Its status says whether it was."""
    scenes.asking(runs)
    script = tmp_path / "tell.py"
    script.write_text(
        "import os, sys, pathlib\n"
        f"told = pathlib.Path({str(tmp_path / 'told')!r})\n"
        "told.open('a').write(os.environ['REFOLD_NOTIFY_KEY'] + ' ' + sys.stdin.read() + '\\n')\n"
        "sys.exit(len(told.read_text().splitlines()) < 2)\n"
    )
    rounds(runs, f"command:{sys.executable} {script}", count=4)
    lines = (tmp_path / "told").read_text().splitlines()
    assert len(lines) == 2
    assert lines[0] == lines[1]
    assert json.loads(lines[0].partition(" ")[2])["key"] == lines[0].partition(" ")[0]


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("webhook:http://127.0.0.1/x", SECRET),
        ("webhook:ftp://x", "webhook:URL"),
        ("webhook:http://127.0.0.1:99999/x", "webhook:URL"),
        ("webhook:http://[::1/x", "webhook:URL"),
        ("webhook:http://127.0.0.1/\u00e9", "webhook:URL"),
        ("webhook:http://127.0.0.1/a b", "webhook:URL"),
        ("command:", "command:CMD"),
        ("command:true 'unended", "command:CMD"),
        ("x", ""),
    ],
)
def test_a_target_that_can_not_be_told_is_a_mistake_of_the_command_line(
    refold: Refold, runs: Path, monkeypatch: pytest.MonkeyPatch, target: str, says: str
) -> None:
    """Before a run is carried."""
    monkeypatch.delenv(SECRET, raising=False)
    scenes.asking(runs)
    refold("worker", Agent("paying"), "--notify", target).ends(2, err=says)


@pytest.mark.fault("a target that is told never answers")
def test_a_target_that_lets_the_time_run_out_is_asked_once_a_round_and_holds_up_no_other(
    runs: Path, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whoever answers is told after all of that one's time, a question at a time; and each question has a turn."""
    asked = list[str]()

    def never(*_: object, env: dict[str, str], **__: object) -> None:
        asked.append(env["REFOLD_NOTIFY_KEY"])
        raise subprocess.TimeoutExpired("true", notify.PATIENCE)

    for run in ("one", "two", "three"):
        runner.start_sync(agents.paying, "x", runs=runs, run=run)
    monkeypatch.setattr(subprocess, "run", never)
    rounds(runs, "command:true", hook.target)
    assert (len(asked), len(hook.came)) == (1, 3)
    asked.clear()
    rounds(runs, "command:true", hook.target, count=4)
    assert (len(set(asked)), len(asked), len(hook.came)) == (3, 4, 3)
    assert asked[0] == asked[3]


@pytest.mark.fault("a round of telling fails for whatever reason")
def test_a_round_that_fails_is_not_the_last(runs: Path, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker goes on, so nobody would notice that nobody is told any more."""
    scenes.asking(runs)
    errors, told = [eventlog.NotARunsDirectory("runs", "gone"), OSError(24, "too many"), RuntimeError("odd")], []
    monkeypatch.setattr(notify, "AGAIN", 0.01)

    async def main() -> None:
        notifier = Notifier([hook.target], str(runs))
        whole = notifier.round

        def round_() -> None:
            if errors:
                raise errors.pop()
            whole()
            told.append(len(hook.came))

        monkeypatch.setattr(notifier, "round", round_)
        telling = asyncio.create_task(notifier.run())
        while not told:  # noqa: ASYNC110 (it happens in a thread)
            await asyncio.sleep(0.01)
        telling.cancel()

    asyncio.run(asyncio.wait_for(main(), 120))
    assert told[0] == 1


@pytest.mark.full
def test_a_real_worker_tells_of_a_question_as_soon_as_it_is_saved(runs: Path, tmp_path: Path) -> None:
    """And the one after it, which finds it noted, does not."""
    told = tmp_path / "told"
    told.touch()
    runner.enqueue(agents.paying, "pay", runs=runs, run="r")
    for _ in range(2):
        words = [
            "worker",
            "--agent",
            "tests.cli.agents:paying",
            "--runs",
            str(runs),
            "--notify",
            f"command:tee -a {told}",
        ]
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "runner._cli", *words],
            env=environment(PYTHONPATH=str(ROOT)),
            stdout=subprocess.PIPE,
        ) as worker:
            assert worker.stdout is not None
            stage.within(60, lambda: any((runs / ".notified").glob("*")))
            os.kill(worker.pid, signal.SIGTERM)
            worker.stdout.read()
    assert told.read_text().count('"id": "1.0-approve"') == 1
