"""The current agent against a history: another decision is named at its first place, other words are drift."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace

import runner
from replay.events import AttemptMarked, ModelAsked, QuestionAsked, ReplySaved
from runner._review.retrace import retrace_lines
from tests.review.retrace.histories import History, batch

pytestmark = [pytest.mark.fault("code that decides otherwise after a deploy")]

TOOLS = sorted(batch().agent.definitions.tools)

Change = Callable[[runner.Agent], runner.Agent]


def _with(agent: runner.Agent, name: str, **declared: object) -> runner.Agent:
    """The agent with one of its tools declared otherwise."""
    tools = []
    for tool in agent.tools:
        other = tool.around(lambda body: body) if tool.name == name else tool
        if tool.name == name:
            vars(other).update(declared)
        tools.append(other)
    return agent.replace(tools=tools)


def _without(agent: runner.Agent, name: str) -> runner.Agent:
    return agent.replace(tools=[tool for tool in agent.tools if tool.name != name])


def _line(history: History, agent: runner.Agent) -> int | None:
    found = retrace_lines(history.lines, agent).divergence
    return found.seq if found is not None else None


def test_the_batch_goes_its_way_through_todays_code_without_any_drift(whole_batch: History) -> None:
    """160 decisions of a real history, all of them the same: else every other test here says nothing."""
    told = retrace_lines(whole_batch.lines, whole_batch.agent)
    decided = sum(event.is_decision for _, event in whole_batch.events())
    assert (told.divergence, told.drift) == (None, ())
    assert (told.seq, told.decisions) == (whole_batch.lines[-1].seq, decided)
    assert decided == 160


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_that_is_gone_diverges_where_it_was_first_tried(whole_batch: History, tool: str) -> None:
    """The current code would tell the model that there is no such tool, or end a wave of reads before it."""
    assert _line(whole_batch, _without(whole_batch.agent, tool)) == whole_batch.first(tool)


@pytest.mark.parametrize("tool", TOOLS)
def test_another_effect_diverges_where_its_tool_was_first_tried(whole_batch: History, tool: str) -> None:
    """The marker would say that a repeat does something else."""
    had = next(t.effect for t in whole_batch.agent.tools if t.name == tool)
    other = _with(whole_batch.agent, tool, effect="idempotent" if had == "reads" else "reads")
    assert _line(whole_batch, other) == whole_batch.first(tool)


def test_a_divergence_shows_what_differs_and_nothing_else(whole_batch: History) -> None:
    """Both sides of an event, field by field; a person must not have to compare two long lines."""
    told = retrace_lines(whole_batch.lines, _with(whole_batch.agent, "code_patch", effect="idempotent")).divergence
    assert told is not None
    assert told.why == "the attempt of a call differs in effect"
    assert (
        told.diff()
        == '- the attempt of a call, effect: "non_idempotent"\n+ the attempt of a call, effect: "idempotent"'
    )
    gone = retrace_lines(whole_batch.lines, _without(whole_batch.agent, "code_patch")).divergence
    assert gone is not None
    assert gone.why == "the history has the attempt of a call, the current code the result of a call"
    assert "there is no tool named 'code_patch'" in gone.diff()


CHANGES: list[tuple[str, Change, str, str]] = [
    (
        "retention",
        lambda a: _with(a, "issue_file", key_ttl=60.0),
        "issue_file",
        "the attempt of a call differs in key_ttl",
    ),
    ("intent", lambda a: _with(a, "issue_file", once_per=()), "issue_file", "the attempt of a call differs in intent"),
    (
        "approval",
        lambda a: _with(a, "code_patch", approval=True),
        "code_patch",
        "the history has the attempt of a call, the current code the question to a person",
    ),
    (
        "no approval",
        lambda a: _with(a, "issue_file", approval=False),
        "issue_file",
        "the history has the question to a person, the current code the attempt of a call",
    ),
]


@pytest.mark.parametrize(("change", "tool", "why"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_another_declaration_diverges_where_its_tool_was_first_tried(
    whole_batch: History, change: Change, tool: str, why: str
) -> None:
    """Retention, intent and approval are part of what is decided."""
    told = retrace_lines(whole_batch.lines, change(whole_batch.agent)).divergence
    assert told is not None
    assert (told.seq, told.why) == (whole_batch.first(tool), why)


def test_arguments_that_todays_tool_refuses_diverge_where_they_were_first_given(whole_batch: History) -> None:
    """A new required argument makes the old calls invalid."""

    @runner.tool(name="code_read", effect="reads")
    def stricter(path: str, line: int) -> str:
        raise AssertionError(path, line)

    tools = [stricter if tool.name == "code_read" else tool for tool in whole_batch.agent.tools]
    assert _line(whole_batch, whole_batch.agent.replace(tools=tools)) == whole_batch.first("code_read")


def _summary(history: History) -> int:
    return next(seq for seq, e in history.events() if isinstance(e, ModelAsked) and e.purpose == "summary")


def _longer(history: History, tokens: int) -> int:
    """The first line that asks behind a reply whose input was longer than `tokens`."""
    long = False
    for seq, event in history.events():
        if isinstance(event, ReplySaved):
            long = event.reply.usage.input_tokens > tokens
        if isinstance(event, ModelAsked) and long:
            return seq
    raise AssertionError(tokens)


POLICIES: list[tuple[str, Change, Callable[[History], int]]] = [
    ("none", lambda a: a.replace(context=None), _summary),
    ("later", lambda a: a.replace(context=replace(a.context, tokens=10**6)), _summary),  # type: ignore[type-var] # ours
    ("keeps more", lambda a: a.replace(context=replace(a.context, keep=20)), _summary),  # type: ignore[type-var] # ours
    ("earlier", lambda a: a.replace(context=replace(a.context, tokens=9000)), lambda h: _longer(h, 9000)),  # type: ignore[type-var] # ours
]


@pytest.mark.parametrize(("change", "where"), [row[1:] for row in POLICIES], ids=[row[0] for row in POLICIES])
def test_another_context_policy_diverges_at_the_first_ask_it_changes(
    whole_batch: History, change: Change, where: Callable[[History], int]
) -> None:
    """What is summarised, and when, is a decision."""
    assert _line(whole_batch, change(whole_batch.agent)) == where(whole_batch)


def test_a_policy_that_raises_is_a_divergence_and_not_a_crash(whole_batch: History) -> None:
    """The current code is on trial: its error is its answer, and has a place."""

    def broken(_messages: object, _summary: object, _usage: object) -> None:
        message = "no such model"
        raise KeyError(message)

    told = retrace_lines(whole_batch.lines, whole_batch.agent.replace(context=broken)).divergence
    assert told is not None
    assert (told.seq, told.now) == (2, ())
    assert told.why == "the current code raises KeyError: 'no such model'"


def _schema(agent: runner.Agent) -> dict[str, object]:
    tool = next(t for t in agent.tools if t.name == "code_read")
    shown: dict[str, object] = {**tool.schema, "title": "Reading"}
    return shown


WORDS: list[tuple[str, Change, set[str]]] = [
    ("instructions", lambda a: a.replace(instructions="Other words."), {"instructions"}),
    ("a tool's description", lambda a: _with(a, "code_read", description="Read."), {"tools", "tool code_read"}),
    (
        "a tool's schema",
        lambda a: _with(a, "code_read", signature=replace(_read(a).signature, schema=_schema(a))),
        {"tools", "tool code_read"},
    ),
    ("parameters", lambda a: a.replace(parameters={"temperature": 0.2}), {"parameters"}),
    (
        "how a summary is asked for",
        lambda a: a.replace(context=replace(a.context, instructions="In short, please.")),  # type: ignore[type-var] # ours
        {"instructions", "context"},
    ),
    ("a new tool", lambda a: a.replace(tools=[*a.tools, _new()]), {"tools", "tool weather"}),
    ("the order of the tools", lambda a: a.replace(tools=[*reversed(a.tools)]), {"tools"}),
]


def _read(agent: runner.Agent) -> runner.Tool:
    found = agent.tool("code_read")
    assert found is not None
    return found


def _new() -> runner.Tool:
    @runner.tool(effect="keyed", key_ttl=timedelta(hours=1))
    def weather(city: str) -> str:
        raise AssertionError(city)

    return weather


@pytest.mark.parametrize(("change", "parts"), [row[1:] for row in WORDS], ids=[row[0] for row in WORDS])
def test_other_words_are_drift_and_no_divergence(whole_batch: History, change: Change, parts: set[str]) -> None:
    """A prompt may be improved without every old run being called broken; what changed is named."""
    told = retrace_lines(whole_batch.lines, change(whole_batch.agent))
    assert told.divergence is None
    assert told.decisions == 160
    assert {drift.part for drift in told.drift} == parts
    assert all(drift.was != drift.now for drift in told.drift)


def test_drift_is_named_at_every_ask_that_it_changes(whole_batch: History) -> None:
    """Not only that something is different, but where it would have been sent."""
    told = retrace_lines(whole_batch.lines, whole_batch.agent.replace(parameters={"temperature": 0.2}))
    asks = [seq for seq, event in whole_batch.events() if isinstance(event, ModelAsked)]
    assert [drift.seq for drift in told.drift if drift.tag == "model_asked"] == asks
    assert [drift.seq for drift in told.drift if drift.tag == "run_started"] == [1]


def test_who_answers_approvals_is_an_input_of_each_line_and_not_a_decision(whole_batch: History) -> None:
    """Else a run that was carried on with approvals off would be called broken for it."""
    assert _line(whole_batch, whole_batch.agent.replace(approve="ask")) is None
    marked = [seq for seq, event in whole_batch.events() if isinstance(event, AttemptMarked)]
    asked = [seq for seq, event in whole_batch.events() if isinstance(event, QuestionAsked)]
    assert set(asked) <= set(marked)  # the policy answered in the line that asked
