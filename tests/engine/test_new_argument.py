"""A deploy gives a tool one more argument while a call of it is under way: every attempt sends the same, or none."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import runner
from replay.events import AttemptEnded, AttemptMarked, QuestionAsked, ResultRecorded
from tests.review.retrace.histories import logged
from tests.support import tools
from tests.support.story import Story

PAY = '{"to": "bob"}'


def _newer(effect: Any) -> tuple[runner.Agent, runner.Agent]:
    """An agent, and the same after a deploy that gave its tool one more argument, with a default."""

    def old(to: str) -> str:
        raise AssertionError(to)

    def new(to: str, cents: int = 100_000) -> str:
        raise AssertionError(to, cents)

    options: dict[str, Any] = {"effect": effect, "approval": lambda arguments: arguments.get("cents", 0) > 500}
    if effect == "keyed":
        options["key_ttl"] = timedelta(hours=24)
    first, second = (tools.agent(runner.Tool(body, name="pay", **options)) for body in (old, new))
    return first, second


@pytest.mark.fault("a parameter is new between attempts")
@pytest.mark.parametrize("effect", ["keyed", "idempotent", "non_idempotent"])
def test_a_call_in_doubt_is_not_repeated_with_an_argument_that_is_new(effect: Any) -> None:
    """Nobody approved its default, and the first attempt's key would go out with another body."""
    before, after = _newer(effect)
    story = Story(before)
    (marked,) = (e for e in story.reply(("pay", PAY)) if isinstance(e, AttemptMarked))
    assert marked.arguments == PAY
    story.die(agent=after)
    (asked, *_) = story.go()
    assert isinstance(asked, QuestionAsked)
    assert (asked.arguments, "other arguments" in asked.why) == (PAY, True)
    *_, recorded = (e for e in story.answer(asked.id, "rerun") if isinstance(e, ResultRecorded))
    assert (recorded.how, "other arguments" in recorded.text) == ("invalid", True)


@pytest.mark.fault("a parameter is new between attempts")
def test_a_read_with_an_argument_that_is_new_is_left_to_the_model() -> None:
    """It has changed nothing, so no person is asked."""
    before, after = _newer("reads")
    story = Story(before)
    story.reply(("pay", PAY))
    story.die(agent=after)
    (recorded, *_) = story.go()
    assert isinstance(recorded, ResultRecorded)
    assert (recorded.how, "other arguments" in recorded.text) == ("invalid", True)


@pytest.mark.fault("a parameter is new between attempts")
def test_an_attempt_that_did_nothing_is_not_repeated_with_an_argument_that_is_new() -> None:
    """It was to be tried again, past the gates that it had passed without the argument."""
    before, after = _newer("idempotent")
    story = Story(before)
    story.reply(("pay", PAY))
    story.write(AttemptEnded(call="1.0", n=1, did="nothing", error="busy", retry_after=1.0))
    story.die(agent=after)
    (recorded, *_) = story.go()
    assert isinstance(recorded, ResultRecorded)
    assert (recorded.how, "other arguments" in recorded.text) == ("invalid", True)


@pytest.mark.fault("a parameter is new between attempts")
def test_preflight_names_a_call_that_was_tried_without_an_argument_that_is_new(runs: Path) -> None:
    """The deploy is stopped before the run meets it."""
    before, after = _newer("keyed")
    story = Story(before)
    story.reply(("pay", PAY))
    logged(story, runs)
    (found,) = runner.review.preflight(runs, after)
    assert [issue.says for issue in found.issues if issue.kind == "schema-changed" and issue.blocks] == [
        'call 1.0 was tried as {"to": "bob"}, and the current pay would run it as {"to": "bob", "cents": 100000}'
    ]
