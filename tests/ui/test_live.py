"""A run's page while it is open: what it is told, what is read for it, and how much of a long run it shows."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

import eventlog
import runner
import runner.testing
from runner import ui
from tests.runs.test_status import Counting
from tests.support import stage
from tests.ui import scenes
from tests.ui.scenes import SECRET, Person


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A directory with a run that asks whether it may pay."""
    stage.asked(runner.start_sync(scenes.paying(), stage.TASK, runs=tmp_path / "runs", run="r"))
    return tmp_path / "runs"


async def listen(console: Any, after: int, heard: asyncio.Queue[str]) -> None:
    """A page of run `r` that was made at a line, as a server talks to the console."""

    async def receive() -> Any:
        return await asyncio.Event().wait()

    async def send(message: Any) -> None:
        await heard.put(message.get("body", b"").decode())

    scope = {"type": "http", "method": "GET", "path": "/runs/r/events", "headers": [(b"host", b"127.0.0.1")]}
    await console({**scope, "query_string": f"after={after}".encode()}, receive, send)


async def told(heard: asyncio.Queue[str], line: int) -> None:
    """Wait until a page hears of a line."""
    while f"id: {line}\n" not in await heard.get():
        pass


def test_a_page_is_told_what_is_saved_and_the_text_as_it_comes_masked(runs: Path) -> None:
    """Where the run is carried in the same process; a secret that comes in pieces is one all the same."""
    heard: asyncio.Queue[str] = asyncio.Queue()
    said: list[str] = []

    async def until(text: str) -> None:
        while text not in "".join(said):
            said.append(await heard.get())

    class Telling(runner.testing.ScriptedModel):
        async def ask(self, request: runner.Request) -> runner.Reply:
            assert request.heard is not None
            for piece in ("The key is ", SECRET[:20], SECRET[20:], " and ", "more"):
                request.heard(piece)
            await until('"The key is [secret] and"')
            request.heard(" to say ")
            await until('"The key is [secret] and more to say"')
            return await super().ask(request)

    async def main() -> None:
        calls = runner.testing.tool_calls(("pay", {"amount": 7, "to": "ann"}))
        agent = scenes.paying().replace(model=Telling([calls, "over"]))
        page = asyncio.create_task(listen(ui.app(runs, identify=lambda _request: "ann"), 0, heard))
        await until(f"id: {runner.read_state('r', runs).seq}\n")  # it listens: a reply before that is told to nobody
        runner.approve("r", "1.0-approve", "bob", runs=runs)
        async with runner.Worker([agent], runs=runs):
            await page
        while not heard.empty():
            said.append(heard.get_nowait())

    asyncio.run(asyncio.wait_for(main(), 120))
    told = re.findall(r"event: (\w+)\ndata: (.*)\n", "".join(said))
    kinds = [kind for kind, _ in told]
    assert (kinds[0], kinds[-2:]) == ("saved", ["saved", "over"])
    texts = [json.loads(data)["text"] for kind, data in told if kind == "text"]
    assert not any(SECRET[:20] in text for text in texts)


@pytest.mark.fault("a secret on a page that others see")
@pytest.mark.parametrize(("long", "seen"), [(4_000, "and after them"), (9_000, "and after them"), (90_000, "[secret]")])
def test_neither_a_calls_progress_nor_the_rest_of_a_long_secret_is_told_as_it_came(
    runs: Path, long: int, seen: str
) -> None:
    """Of a long text the page is told the end, which may begin within a secret, however long that is."""
    heard: asyncio.Queue[str] = asyncio.Queue()
    said: list[str] = []

    async def until(text: str) -> None:
        while text not in "".join(said):
            said.append(await heard.get())

    @runner.tool(effect="reads")
    async def look() -> str:
        """Look around."""
        runner.current_call().progress(0.5, f"with {SECRET} in hand")
        await until("in hand")
        return "seen"

    class Telling(runner.testing.ScriptedModel):
        async def ask(self, request: runner.Request) -> runner.Reply:
            assert request.heard is not None
            keys = (
                f"-----BEGIN PRIVATE KEY-----\n{'MIIEvQ' * (n // 6)}\n-----END PRIVATE KEY-----\n" for n in (long, 1800)
            )
            for text in (*keys, "word " * 700, "and after them "):
                request.heard(text)
                before = len(said)
                await until_text(before)
            await until(seen)
            return await super().ask(request)

    async def until_text(before: int) -> None:
        while not any("event: text" in one for one in said[before:]):
            said.append(await heard.get())

    async def main() -> None:
        calls = [
            runner.testing.tool_calls(("pay", {"amount": 7, "to": "ann"})),
            runner.testing.tool_calls(("look", {})),
        ]
        paying = scenes.paying()
        agent = paying.replace(model=Telling([*calls, "over"]), tools=[*paying.tools, look])
        page = asyncio.create_task(listen(ui.app(runs, identify=lambda _request: "ann"), 0, heard))
        await until(f"id: {runner.read_state('r', runs).seq}\n")
        runner.approve("r", "1.0-approve", "bob", runs=runs)
        async with runner.Worker([agent], runs=runs):
            await page

    asyncio.run(asyncio.wait_for(main(), 120))
    told = "".join(said)
    assert "with [secret] in hand" in told
    assert SECRET not in told
    assert "MIIEvQ" not in told


def test_open_pages_of_a_run_are_told_by_one_reading_of_it(runs: Path) -> None:
    """Each hears the newest from its own line on, and the log is read once for all."""
    disk = Counting()
    console = ui.app(eventlog.Directory(runs, disk=disk), identify=lambda _request: "ann")

    async def main() -> None:
        with eventlog.store(runs).open("r") as log:
            pages: list[asyncio.Queue[str]] = [asyncio.Queue() for _ in range(3)]
            tasks, read = [], []
            for number, heard in enumerate(pages, 1):
                tasks.append(asyncio.create_task(listen(console, log.seq - number, heard)))
                await told(heard, log.seq)
                read.append(disk.whole)
            line = log.append(log.at, [b'{"type":"message_received","id":"m","text":"x","who":"o"}'])
            for heard in pages:
                await told(heard, line.seq)
            assert read[0] > 0
            assert [*read, disk.whole] == [read[0]] * 4
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())


def test_an_open_page_that_asks_again_reads_only_what_was_written_since(runs: Path) -> None:
    """Whoever opens it gets what the whole log says."""
    disk = Counting()
    ann = Person(eventlog.Directory(runs, disk=disk))
    ann.see("/runs/r")
    with eventlog.store(runs).open("r") as log:
        log.append(log.at, [b'{"type":"message_received","id":"m","text":"hurry up","who":"bob"}'])
        disk.whole = 0
        assert "hurry up" in ann.client.get("/runs/r?near=line-1", headers={"Refold-Again": "1"}).text
        assert disk.whole == 0
        assert "hurry up" in ann.see("/runs/r")
        assert disk.whole > 0


def test_a_long_run_is_shown_in_parts_and_its_report_whole(runs: Path) -> None:
    """The last lines, and those around what an address names."""
    calls = [runner.testing.tool_calls(("look", {})) for _ in range(120)]

    @runner.tool(effect="reads")
    def look() -> str:
        return "seen"

    agent = stage.agent([*calls, "over"], look, name="long", limits=runner.Limits(turns=200))
    stage.finished(runner.start_sync(agent, stage.TASK, runs=runs, run="l"))
    ann, last = Person(runs), runner.read_state("l", runs).seq
    assert last > 220

    def shown(query: str) -> list[int]:
        return [int(number) for number in re.findall(r'id="line-(\d+)"', ann.see(f"/runs/l{query}"))]

    assert shown("") == [*range(last - 199, last + 1)]
    assert shown("?near=line-7") == shown("?near=call-1.0") == [*range(200)]
    assert shown("?near=nothing") == shown("")
    assert 'href="?near=line-' in ann.see("/runs/l")
    assert ann.see("/runs/l/report").count('id="line-') == last + 1
    assert "?near=" not in ann.see("/runs/l/report")
