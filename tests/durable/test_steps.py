"""Steps that fail: the same failure in every life, and to each step its own value."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import runner
from runner import durable
from runner.adapters import Durable
from runner.errors import TooManyResumes
from runner.review import retrace

Body = Callable[[], object]


class Odd(Exception):
    """No error of Python's own, nor a kind of one."""


class Shop:
    """What bodies did, and what the program was given; `up` says whether its server answers."""

    def __init__(self) -> None:
        self.computed: list[str] = []
        self.seen: list[str] = []
        self.up = True

    def body(self, value: str, error: Exception | None = None) -> Body:
        """A body that gives this, or raises that."""

        def body() -> str:
            self.computed.append(value)
            if error is not None or not self.up:
                raise error or ConnectionError("down")
            return value

        return body

    async def tried(self, run: Durable, body: Body) -> None:
        """Take one step and note what it came to."""
        try:
            self.seen.append(await run.step("price", body))
        except Exception as error:  # noqa: BLE001 (the test looks at it)
            self.seen.append(f"{type(error).__name__}({error})")


@pytest.mark.fault("a wrong argument")
@pytest.mark.parametrize("name", [3, None, "\ud800"])
async def test_a_name_that_no_log_holds_is_refused_before_the_step_is_computed(tmp_path: Path, name: Any) -> None:
    """Its body would run in every life anew."""
    shop = Shop()
    with pytest.raises(runner.BadAgent, match="the name of a step is"):
        async with durable("t", runs=tmp_path, run="r") as run:
            await run.step(name, shop.body("7"))
    assert shop.computed == []


@pytest.mark.parametrize("after", [1, 2])
@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (ValueError("no"), "ValueError(no)"),
        (json.JSONDecodeError("no", "", 0), "ValueError(JSONDecodeError: no: line 1 column 1 (char 0))"),
        (Odd("no"), "StepFailed(step price failed: Odd: no)"),
        (StopIteration("no"), "StepFailed(step price failed: StopIteration: no)"),
        (UnicodeEncodeError("ascii", "x", 0, 1, "no"), "UnicodeError(UnicodeEncodeError: 'ascii' codec can't"),
        (ExceptionGroup("no", [ValueError()]), "StepFailed(step price failed: ExceptionGroup: no (1 sub-exception))"),
    ],
)
async def test_a_caught_failure_is_the_same_in_every_life_and_the_next_step_keeps_its_value(
    tmp_path: Path, error: Exception, seen: str, after: int
) -> None:
    """Whether the first life ended before or after the next step of the name: nothing goes to another step."""
    shop = Shop()
    bodies = [shop.body("a", error), shop.body("b"), shop.body("c")]

    async def life(ends: int | None = None) -> None:
        async with durable("t", runs=tmp_path, run="r") as run:
            for body in bodies[:ends]:
                await shop.tried(run, body)
            if ends is not None:
                raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await life(after)
    await life()
    await life()  # of the run that is done now
    failed = shop.seen[0]
    assert failed.startswith(seen)
    assert shop.seen == [*[failed, "b"][:after], *[failed, "b", "c"] * 2]
    assert shop.computed == ["a", "b", "c"]


@pytest.mark.parametrize("how", ["alone", "translated", "in a group"])
def test_a_failure_that_ends_the_program_is_tried_again(tmp_path: Path, how: str) -> None:
    """Also beside a step that succeeded, which is not computed again, and when nothing but the failure is known."""
    shop = Shop()

    async def fetched(run: Durable) -> str:
        try:
            return str(await run.step("fetched", shop.body("a")))
        except ConnectionError as error:
            if how != "translated":
                raise
            raise Odd from error

    @runner.durable_main(name="shop")
    async def main(run: Durable, _task: str, _inputs: None) -> str:
        first = await run.step("first", lambda: shop.computed.append("first"))
        if how == "in a group":
            async with asyncio.TaskGroup() as group:
                task = group.create_task(fetched(run))
                group.create_task(run.step("beside", shop.body("beside") if first else lambda: "beside"))
            return task.result()
        return await fetched(run)

    shop.up = False
    for _ in range(2):
        with pytest.raises((ConnectionError, Odd, ExceptionGroup)):
            runner.run_sync(main, "t", run="r", runs=tmp_path)
    shop.up = True
    assert runner.run_sync(main, "t", run="r", runs=tmp_path).finished().answer == "a"
    assert shop.computed == ["first", "a", "a", "a"]
    assert retrace("r", main, runs=tmp_path).divergence is None


def test_a_step_that_fails_in_every_life_comes_to_nothing_and_reaches_the_limit_of_resumes(tmp_path: Path) -> None:
    """A failure is no progress: else a worker would carry such a run on for ever."""
    shop = Shop()
    shop.up = False

    @runner.durable_main(name="shop", limits=runner.Limits(resumes=2))
    async def main(run: Durable, _task: str, _inputs: None) -> Any:
        return await run.step("fetched", shop.body("a"))

    for _ in range(3):
        with pytest.raises(ConnectionError):
            runner.run_sync(main, "t", run="r", runs=tmp_path)
    with pytest.raises(TooManyResumes):
        runner.run_sync(main, "t", run="r", runs=tmp_path)
    assert shop.computed == ["a"] * 3


async def test_a_step_that_its_program_cancelled_leaves_its_number_to_nobody(tmp_path: Path) -> None:
    """A timeout around one step: what comes after it keeps its value in each life, also once the run is done."""
    shop = Shop()

    async def life(*, ends: bool) -> None:
        began = asyncio.Event()

        async def hangs() -> None:
            began.set()
            await asyncio.Event().wait()

        async with durable("t", runs=tmp_path, run="r") as run:
            slow = asyncio.create_task(run.step("price", hangs))
            begins = asyncio.create_task(began.wait())
            await asyncio.wait({slow, begins}, return_when=asyncio.FIRST_COMPLETED)
            slow.cancel()
            begins.cancel()
            await asyncio.wait({slow})
            await shop.tried(run, shop.body("b"))
            if ends:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await life(ends=True)
    await life(ends=False)
    await life(ends=False)
    assert shop.seen == ["b", "b", "b"]
    assert shop.computed == ["b"]
