"""What `guarantees` says of a tool is what `decide` does with its calls: in words, rung by rung, on every walk."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runner
from replay import Event
from replay.events import AttemptMarked, LookupAnswered, LookupAsked, QuestionAsked, WaitUntil
from tests.support import tools
from tests.support.random_walk import ATTEMPTS, RandomWalk
from tests.support.story import Story
from tests.support.walks import TAPE, Tape, moments

EFFECTS: tuple[Literal["reads", "idempotent", "keyed", "non_idempotent"], ...] = (
    "reads",
    "idempotent",
    "keyed",
    "non_idempotent",
)
SAYS = {AttemptMarked: "runs again", LookupAsked: "the service", QuestionAsked: "a person"}
GRID = [
    tools.make("act", effect, lookup=lookup, visible_within=20, attempts=attempts)
    for effect, lookup, attempts in itertools.product(EFFECTS, (False, True), (1, 3))
]
FORGOTTEN = tools.make("act", "keyed", lookup=True, key_ttl=timedelta(seconds=90), timeout=60)
"""Its key is forgotten before the first attempt is sure to have landed."""


def of(tool: runner.Tool, approve: Literal["ask", "off"] = "ask") -> runner.review.Guarantee:
    """What is promised of this tool."""
    (found,) = runner.review.guarantees(tools.agent(tool, approve=approve))
    return found


class Alone(RandomWalk):
    """A walk whose model calls one tool, and whose service never asks a person anything by itself."""

    calls = (("act", '{"cause": "a"}'), ("act", '{"cause": "b"}'))
    attempts = tuple(how for how in ATTEMPTS if how != "asks")


declared = st.builds(
    tools.make,
    st.just("act"),
    st.sampled_from(EFFECTS),
    lookup=st.booleans(),
    visible_within=st.sampled_from([None, 0, 5, 30]),
    approval=st.sampled_from([False, True, lambda arguments: arguments["cause"] == "b"]),
    attempts=st.integers(1, 4),
    timeout=st.sampled_from([1, 10]),
    key_ttl=st.sampled_from([timedelta(seconds=23), timedelta(minutes=5), timedelta(hours=24)]),
)
tapes = st.binary(min_size=TAPE, max_size=TAPE)
approves: st.SearchStrategy[Literal["ask", "off"]] = st.sampled_from(["ask", "off"])


@settings(max_examples=120)
@given(declared, approves, tapes)
def test_what_may_not_ask_never_asks_and_what_may_not_repeat_never_repeats(
    tool: runner.Tool, approve: Literal["ask", "off"], tape: bytes
) -> None:
    """Whatever history a tool's calls have: deaths, lost and late effects, services that are down, clocks set back."""
    said = of(tool, approve)
    walk = Alone(Tape(tape), agent=tools.agent(tool, approve=approve)).walk()
    asked = [m.event for m in moments(walk) if isinstance(m.event, QuestionAsked)]
    if not said.may_ask:
        assert [question for question in asked if approve == "ask" or question.kind == "settle"] == []
    if not said.may_repeat and tool.effect != "reads":
        assert max(walk.service.acted.values(), default=0) <= 1


def tried(tool: runner.Tool) -> Story:
    """A story whose first call, of this tool, is in flight."""
    story = Story(tools.agent(tool))
    assert isinstance(story.reply(("act", '{"cause": "a"}'))[-1], AttemptMarked)
    return story


def climb(story: Story, intents: list[Event]) -> list[str]:
    """What is done about the call, in order, when every rung fails to settle it."""
    done: list[str] = []
    while intents:
        last = intents[-1]
        if isinstance(last, WaitUntil):
            story.tick((last.until - story.now).total_seconds())
            intents = story.go()
            continue
        asked = next((e for e in intents if isinstance(e, tuple(SAYS))), None)
        if asked is None:
            break
        done.append(SAYS[type(asked)])
        if isinstance(asked, QuestionAsked):
            break
        if isinstance(asked, LookupAsked):
            intents = story.go(LookupAnswered(call="1.0", said="unsure"))
        else:
            reads = isinstance(asked, AttemptMarked) and asked.effect == "reads"
            intents = story.ended("nothing" if reads else "unknown")
    return [step for step, _ in itertools.groupby(done)]


@pytest.mark.parametrize(
    "tool",
    [*GRID, pytest.param(FORGOTTEN, marks=pytest.mark.fault("a guarantee promises what can't be"))],
    ids=lambda tool: f"{tool.effect}-{tool.find is not None}-{tool.attempts}-{tool.key_ttl}",
)
def test_the_words_name_what_is_done_in_its_order(tool: runner.Tool) -> None:
    """After a death: what is named is done, what is not named is not, a person only where they may be asked."""
    story = tried(tool)
    story.die(0)
    steps = climb(story, story.go())
    said = of(tool)
    named = sorted((said.words.find(words), words) for words in SAYS.values() if words in said.words)
    assert steps == [words for _, words in named]
    assert said.may_ask == ("a person" in steps)


@pytest.mark.parametrize("tool", GRID, ids=lambda tool: f"{tool.effect}-{tool.find is not None}-{tool.attempts}")
def test_what_may_repeat_does_so_after_the_first_death(tool: runner.Tool) -> None:
    """A warning about something that can't happen would be switched off."""
    story = tried(tool)
    story.die(0)
    (intent, *_) = story.go()
    sent_again = isinstance(intent, AttemptMarked) and intent.effect not in ("reads", "keyed")
    assert of(tool).may_repeat == sent_again


@pytest.mark.parametrize(
    ("tool", "line"),
    [
        (tools.make("act", "reads"), "runs again; may ask: no; may repeat: no"),
        (tools.make("act", "idempotent"), "runs again, then asks a person; may ask: yes; may repeat: yes"),
        (
            tools.make("act", "keyed", lookup=True, key_ttl=timedelta(hours=24)),
            "runs again with its key for 24 h, then asks the service, then a person; may ask: yes; may repeat: no",
        ),
        (
            tools.make("act", "keyed", key_ttl=timedelta(days=30)),
            "runs again with its key for 30 days, then asks a person; may ask: yes; may repeat: no",
        ),
        (
            tools.make("act", "keyed", key_ttl=timedelta.max),
            "runs again with its key for 1,000,000,000 days, then asks a person; may ask: yes; may repeat: no",
        ),
        (
            tools.make("act", "non_idempotent", lookup=True),
            "asks the service, then a person; may ask: yes; may repeat: no",
        ),
        (
            tools.make("act", "non_idempotent", approval=True),
            "needs a yes first; asks a person; may ask: yes; may repeat: no",
        ),
        (
            tools.make("act", "reads", approval=tools.odd),
            "needs a yes first; runs again; may ask: yes; may repeat: no",
        ),
        (FORGOTTEN, "asks the service, then a person; may ask: yes; may repeat: no"),
        (
            tools.make("act", "non_idempotent", once_per=("cause",)),
            "asks a person; once per cause in this run, its continuations and forks; may ask: yes; may repeat: no",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_line_of_a_tool(tool: runner.Tool, line: str) -> None:
    """It is read by people, so the whole sentence counts."""
    assert str(of(tool)) == line


def test_approvals_that_the_policy_answers_ask_nobody() -> None:
    """A run that says yes in the policy's name stops for no one."""
    assert str(of(tools.make("act", "reads", approval=True), "off")) == "runs again; may ask: no; may repeat: no"


def test_every_tool_has_a_line_in_the_agents_order() -> None:
    """None is left out, whatever it declares."""
    assert [each.tool for each in runner.review.guarantees(tools.agent())] == [tool.name for tool in tools.TOOLS]
