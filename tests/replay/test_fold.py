"""The fold: line by line it tells what it tells at once, and each rule beyond the phases refuses what breaks it."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import replay
from replay import Event
from replay.events import (
    FileWritten,
    LookupAnswered,
    PhaseChanged,
    ReplySaved,
    RequestRefused,
    ResultRecorded,
    RunForked,
    WorkspaceAccepted,
)
from replay.messages import AssistantMessage, Reply, ToolCall, ToolResults, UserMessage
from replay.values import FileHash
from tests.replay.positions import (
    AGAIN,
    APPROVE,
    ASKED,
    ASKING,
    CALLED,
    DONE,
    FAILED,
    FINAL,
    FLYING,
    INTENDED,
    LOOKED,
    LOOKING,
    MARKED,
    OPEN,
    PARKED,
    PAUSED,
    PAUSING,
    RESUMED,
    SETTLE,
    STARTED,
    STOPPED,
    TOOLS,
    UNKNOWN,
    WAIT,
    YES,
    after,
)
from tests.support import tools
from tests.support.random_walk import RandomWalk
from tests.support.story import BEGIN, Story
from tests.support.walks import frozen, walks

pytestmark = [pytest.mark.fault("a history that contradicts itself")]

NOTHING = replace(UNKNOWN, did="nothing")
RAN = ResultRecorded(call="1.0", how="ran", text="t", n=1)
FOUND = ResultRecorded(call="1.0", how="found", text="t")
NO = ResultRecorded(call="1.0", how="failed", text="t")
UNSURE = LookupAnswered(call="1.0", said="unsure")
WRITTEN = FileWritten(call="1.0", path="f", sha256="2" * 64)
MISNAMED = ReplySaved(reply=Reply(calls=(ToolCall(tool="x", id="0.1"),)))


@settings(max_examples=40)
@given(walks(deploys=True), st.data())
def test_folding_all_lines_is_folding_them_step_by_step_from_any_prefix(walk: RandomWalk, data: st.DataObject) -> None:
    """A snapshot's state carries on like the log's, and no state is changed by what is folded on it."""
    lines = walk.story.lines
    whole = replay.load(lines)
    assert whole == walk.story.state, "what was folded while the run lived is what its bytes tell"
    cut = data.draw(st.integers(0, len(lines)))
    prefix = replay.load(lines[:cut])
    before = frozen(prefix)
    assert replay.load(lines[cut:], prefix) == whole
    state = prefix
    for line in lines[cut:]:
        for raw in line.events:
            state = replay.step(state, replay.decode(raw), line.at, seq=line.seq)
    assert replace(state, seq=whole.seq, life=whole.life, at=whole.at) == whole
    assert frozen(prefix) == before


ILLEGAL: list[tuple[str, tuple[Event, ...], Event]] = [
    ("something is in flight", ASKING, ASKED),
    ("the last reply is final", FINAL, ASKED),
    ("it is ask 1 in a row, not 2", (), replace(ASKED, n=2)),
    ("it is ask 2 in a row, not 1", (ASKED, FAILED), ASKED),
    ("messages that do not exist", (), replace(ASKED, upto=2)),
    ("messages that do not exist", (), replace(ASKED, upto=-1)),
    ("nothing was asked", (), ReplySaved(reply=Reply())),
    ("nothing was asked", (ASKED, FAILED), FAILED),
    ("call 0 of turn 1 is named '0.1'", ASKING, MISNAMED),
    ("there is no call 2.0", CALLED, replace(MARKED, call="2.0")),
    ("call 1.0 has a result", (*FLYING, RAN), replace(MARKED, n=2)),
    ("attempt 1 comes next, not 2", CALLED, replace(MARKED, n=2)),
    ("this call is in flight", FLYING, replace(MARKED, n=2)),
    ("this call is in flight", LOOKING, replace(MARKED, n=2)),
    ("attempt 1 is not in flight", CALLED, UNKNOWN),
    ("attempt 2 is not in flight", FLYING, replace(UNKNOWN, n=2)),
    ("attempt 1 is not in flight", OPEN, NOTHING),
    ("attempt 1 is not in flight", OPEN, RAN),
    ("attempt 2 is not in flight", FLYING, replace(RAN, n=2)),
    ("call 1.0 has a result", (*FLYING, RAN), RAN),
    ("an attempt of this call is in flight", FLYING, FOUND),
    ("an attempt of this call is in flight", FLYING, NO),
    ("there is nothing to settle", CALLED, FOUND),
    ("there is nothing to settle", (*FLYING, NOTHING), replace(FOUND, how="stated")),
    ("an attempt may have acted", OPEN, NO),
    ("an attempt may have acted", OPEN, replace(NO, how="refused")),
    ("an attempt may have acted", OPEN, replace(NO, how="invalid")),
    ("there is nothing to look up", CALLED, LOOKED),
    ("there is nothing to look up", FLYING, LOOKED),
    ("lookup 1 comes next, not 2", OPEN, replace(LOOKED, n=2)),
    ("lookup 2 comes next, not 1", (*LOOKING, UNSURE), LOOKED),
    ("the service was not asked", OPEN, UNSURE),
    ("something is in flight", FLYING, APPROVE),
    ("something is in flight", LOOKING, SETTLE),
    ("question 1.0-settle-1 was asked before", (*PAUSING, AGAIN, TOOLS), SETTLE),
    ("approvals come before an attempt", OPEN, replace(APPROVE, call="1.0")),
    ("approvals come before an attempt", CALLED, SETTLE),
    ("there is no question", CALLED, YES),
    ("was answered before", (*PAUSING, AGAIN), AGAIN),
    ("does not answer a question of kind settle", PAUSING, replace(AGAIN, answer="approve")),
    ("does not answer a question of kind settle", PAUSING, replace(AGAIN, answer="refuse")),
    ("does not answer a question of kind approve", (*CALLED, APPROVE), replace(YES, answer="rerun")),
    ("does not answer a question of kind approve", (*CALLED, APPROVE), replace(YES, answer="done")),
    ("it answers other arguments than those shown", PAUSING, replace(AGAIN, digest="0" * 32)),
    ("this call is not in flight", OPEN, INTENDED),
    ("there is no call 2.0", (*FLYING, INTENDED), replace(WRITTEN, call="2.0")),
    ("f was not intended to have this content", FLYING, WRITTEN),
    ("f was not intended to have this content", (*FLYING, INTENDED), replace(WRITTEN, sha256=None)),
    ("the life before came to nothing", (), replace(RESUMED, counted=False)),
    ("something is in flight", FLYING, WAIT),
    ("something is in flight", ASKING, replace(WAIT, why="model", call=None)),
    ("the last message is not a final reply", (), PhaseChanged(phase="done")),
    ("the answer is not the last reply's text", FINAL, PhaseChanged(phase="done", answer="43")),
    ("no question waits for an answer", CALLED, PAUSED),
    ("something is in flight", FLYING, PAUSED),
    ("a question has no answer yet", PAUSING, TOOLS),
]


@pytest.mark.parametrize(("why", "events", "event"), ILLEGAL)
def test_what_contradicts_the_state_is_illegal_and_says_why(why: str, events: tuple[Event, ...], event: Event) -> None:
    """A log that holds such an event was not written by this library, or by a broken one: nothing may act on it."""
    state = after(*events)
    before = frozen(state)
    with pytest.raises(replay.IllegalEvent) as illegal:
        replay.step(state, event, BEGIN, seq=9)
    assert why in illegal.value.why
    assert frozen(state) == before


def calls(state: replay.State) -> list[Any]:
    """What is known of the attempts of each call."""
    return [[(a.did, a.died, a.expired) for a in call.attempts] for call in state.calls]


def test_a_new_life_opens_what_was_in_flight_and_loses_the_ask_that_was_sent() -> None:
    """Nobody knows what the dead process's last calls did."""
    state = after(*FLYING, RESUMED)
    assert calls(state) == [[("unknown", True, False)], []]
    assert state.in_doubt == ("1.0",)
    assert not state.busy
    assert after(*ASKING, RESUMED).spent.lost_asks == 1
    assert not after(*LOOKING, RESUMED).busy


def test_a_reader_cannot_tell_in_flight_from_open_and_shows_both_as_open() -> None:
    """It does not know whether the writer lives."""
    assert after(*FLYING).in_doubt == after(*OPEN).in_doubt == ("1.0",)
    assert after(*FLYING).busy != after(*OPEN).busy


def test_a_clock_set_back_expires_the_keys_of_calls_that_have_no_result() -> None:
    """Their age can't be counted any more."""
    assert calls(after(*FLYING, replace(RESUMED, clock_back=True))) == [[("unknown", True, True)], []]
    assert calls(after(*FLYING, RAN, replace(RESUMED, clock_back=True)))[0] == [("in flight", False, False)]


FREE = replace(RESUMED, counted=False)


@pytest.mark.fault("a run that kills its process each time")
@pytest.mark.parametrize(
    "life",
    [
        CALLED,
        (*FLYING, RAN),
        (*OPEN, RESUMED, SETTLE, PAUSED, AGAIN),
        (STOPPED,),
        (PARKED,),
        (replace(WAIT, rested=True),),
    ],
    ids=["a reply", "a result", "an answer", "a drain", "a park", "a rested wait"],
)
def test_a_life_that_came_to_something_makes_one_resume_free(life: tuple[Event, ...]) -> None:
    """The next life counts again: one that dies every time reaches its limit."""
    state = after(*life, FREE)
    assert (state.resumes - after(*life).resumes, state.uncounted) == (0, False)
    with pytest.raises(replay.IllegalEvent, match="came to nothing"):
        replay.step(state, FREE, BEGIN)
    assert replay.step(state, RESUMED, BEGIN).resumes == after(*life).resumes + 1


def test_the_first_resume_of_an_enqueued_run_is_free() -> None:
    """It is its turn, and nothing died."""
    state = replay.step(replay.NEW, replace(STARTED, enqueued=True), BEGIN)
    assert replay.step(state, FREE, BEGIN).resumes == 0


def test_both_contents_of_a_file_are_explained_while_it_is_written_and_one_when_it_is() -> None:
    """A crash in between leaves the old or the new content; absence is a content too."""
    assert after(*FLYING, INTENDED).files == {"f": ("1" * 64, "2" * 64)}
    gone = replace(INTENDED, sha256=None)
    assert after(*FLYING, INTENDED, gone).files == {"f": ("1" * 64, "2" * 64, None)}
    state = after(*FLYING, INTENDED, gone, replace(WRITTEN, sha256=None), RAN)
    assert state.files == {"f": (None,)}
    assert state.hashes() == (FileHash(path="f", sha256=None),)
    again = replace(INTENDED, call="1.1", before="9" * 64)
    assert replay.fold(state, BEGIN, [replace(MARKED, call="1.1"), again]).files == {"f": (None, "2" * 64)}


def test_the_model_is_told_of_accepted_files_where_a_message_may_stand() -> None:
    """Between a reply and its results nothing may be said: providers refuse it."""
    accepted = WorkspaceAccepted(by="ann", files=(FileHash(path="f", sha256="3" * 64),))
    told = after(accepted)
    assert isinstance(told.messages[-1], UserMessage)
    assert "ann" in told.messages[-1].text
    state = after(*FLYING, RAN, accepted)
    assert isinstance(state.messages[-1], AssistantMessage)
    state = replay.step(state, ResultRecorded(call="1.1", how="invalid", text="t"), BEGIN)
    assert [type(m) for m in state.messages[-2:]] == [ToolResults, UserMessage]
    assert (state.notes, state.files) == ((), {"f": ("3" * 64,)})


def test_a_fork_is_another_run_whose_calls_in_flight_are_open_and_whose_questions_are_asked_anew() -> None:
    """What its parent had not settled is as unknown as after a crash; resumes are its own."""
    fork = RunForked(run="f", parent="r", seq=3, host="h", pid=1)
    state = after(RESUMED, *FLYING, fork)
    assert (state.run, state.parent, state.resumes, state.in_doubt) == ("f", "r", 0, ("1.0",))
    waiting = after(*PAUSING, fork)
    assert (waiting.phase, waiting.questions) == ("tools", {})
    assert after(*PAUSING, AGAIN, fork).questions["1.0-settle-1"].answer == AGAIN


def test_a_fork_of_a_done_run_gives_the_answer_again() -> None:
    """The answer is part of the history that it carries on."""
    fork = RunForked(run="f", parent="r", seq=3, host="h", pid=1)
    state = after(*DONE, fork)
    assert state.phase == "model"
    assert replay.step(state, PhaseChanged(phase="done", answer="42"), BEGIN).answer == "42"


def test_what_an_earlier_run_said_comes_before_the_task() -> None:
    """A continued conversation reads in its order."""
    state = replay.step(replay.NEW, STARTED, BEGIN)
    assert state.messages[:] == (UserMessage("before"), UserMessage("t"))


def test_one_digest_names_all_messages_so_far_and_another_history_has_another() -> None:
    """A retrace compares whole conversations by it, at the price of one message an event."""
    one, other = after(*FINAL), after(ASKED, ReplySaved(reply=Reply(text="43")))
    assert one.conversation == after(*FINAL).conversation
    assert len({one.conversation, other.conversation, after().conversation}) == 3
    assert len(one.conversation) == 32


def test_the_last_refusals_of_a_thousand_names_are_kept() -> None:
    """Whoever drops letters into an inbox for ever makes no state that grows for ever."""
    story = Story(tools.agent())
    for n in (*range(1_500), 700):
        story.write(RequestRefused(request=f"rule-{n}", who="ann", why=f"{n}", post=f"{n}"))
    refused = story.state.refused
    assert [*refused] == [f"rule-{n}" for n in (*range(500, 700), *range(701, 1_500), 700)]
    assert replay.load(story.lines).refused == refused


@pytest.mark.parametrize(("first", "fault"), [(MARKED, replay.IllegalEvent), (ASKED, replay.Undecodable)])
def test_of_two_faults_in_a_line_the_first_is_named(first: Event, fault: type[Exception]) -> None:
    """That a later event can't be decoded hides nothing before it, though a line is decoded at once."""
    story = Story(tools.agent())
    events = [msgspec.Raw(replay.encode(first)), msgspec.Raw(b'{"type":"reply_saved"}')]
    with pytest.raises(fault, match="line 7"):
        replay.load([*story.lines, dataclasses.replace(story.lines[-1], seq=7, events=events)])
