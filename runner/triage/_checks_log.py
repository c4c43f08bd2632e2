"""The checks that compare the log with the tracker, the recording and itself.

The sums are taken from the events one by one, not from the state, so that a mistake in the fold does not confirm
itself. Each returns why it fails, or an empty text.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence

import eventlog
import runner
import runner.testing
from replay.events import ModelAsked, ModelFailed, ReplySaved, ResultRecorded, RunForked, RunResumed
from replay.messages import CostBound
from runner.triage._evidence import Evidence, Missing, check
from runner.triage._tracker_store import Comment, Issue


@check("same-key", "log")
def same_key(evidence: Evidence) -> str:
    """Each issue came under the key that the log holds for the call that filed it, in every one of its attempts."""
    return _under_keys(evidence, "issue_file", evidence.issues)


@check("comments-same-key", "log")
def comments_same_key(evidence: Evidence) -> str:
    """Each comment came under the key that the log holds for the call that made it, and each such call made one."""
    return _under_keys(evidence, "issue_comment", evidence.comments)


def _under_keys(evidence: Evidence, tool: str, made: Sequence[Issue | Comment]) -> str:
    keys, stored = evidence.keys(tool), Counter(one.key for one in made)
    if not keys:
        raise Missing(f"the log holds no attempt of {tool}")
    if twice := [str(key) for key, number in stored.items() if number > 1]:
        return f"several came under {', '.join(twice)}"
    return "" if stored.keys() == keys else f"the tracker holds {sorted(map(str, stored))}, the log {sorted(keys)}"


@check("same-spend", "log")
def same_spend(evidence: Evidence) -> str:
    """Turns, tokens and dollars of the replies are those of the recording: none paid twice, none missing."""
    recorded, spent = runner.testing.RecordedModel(evidence.task.recording).replies, evidence.state.spent
    turns = sum(purpose == "turn" for _, purpose in recorded)
    due = [(reply.usage.input_tokens, reply.usage.output_tokens, reply.dollars) for reply in recorded.values()]
    return _differs(turns, due, (evidence.state.turns, spent.input_tokens, spent.output_tokens, spent.dollars))


@check("lost-asks-accounted", "log")
def lost_accounted(evidence: Evidence) -> str:
    """Every ask whose reply never came counts as spent by its bound, once, apart from the replies."""
    lost: list[CostBound] = []
    asked: CostBound | None = None
    for event in evidence.events:
        gone = isinstance(event, RunResumed | RunForked)
        if asked is not None and (gone or (isinstance(event, ModelFailed) and event.billed)):
            lost.append(asked)
        if gone or isinstance(event, ModelFailed | ReplySaved):
            asked = None
        elif isinstance(event, ModelAsked):
            asked = event.bound
    if asked is not None:
        return "an ask is still without a reply"
    due = [(bound.input_tokens, bound.output_tokens, bound.dollars) for bound in lost]
    spent = evidence.state.spent
    counted = (spent.lost_asks, spent.lost_input_tokens, spent.lost_output_tokens, spent.lost_dollars)
    return _differs(len(lost), due, counted)


def _differs(number: int, each: Sequence[tuple[int, int, float | None]], counted: tuple[int, int, int, float]) -> str:
    """Whether a number, tokens and dollars were counted as they should be, summed over `each`."""
    due = (number, *(sum(one[at] or 0 for one in each) for at in range(3)))
    is_ok = counted[:3] == due[:3] and math.isclose(counted[3], due[3], abs_tol=1e-9)
    return "" if is_ok else f"the count, the tokens in and out and the dollars are {counted}, not {due}"


@check("settled", "log")
def settled(evidence: Evidence) -> str:
    """Every call of every reply has exactly one result, and none is in doubt."""
    results = Counter(event.call for event in evidence.events if isinstance(event, ResultRecorded))
    wrong = {call: results[call] for call in evidence.calls if results[call] != 1}
    if wrong or not evidence.calls:
        return f"results by call: {wrong}" if wrong else "the log holds no call"
    unknown = sorted(results.keys() - evidence.calls.keys())
    if unknown or evidence.state.in_doubt:
        return f"results of no call: {unknown}; in doubt: {list(evidence.state.in_doubt)}"
    return "" if evidence.state.phase == "done" else f"the run is in phase {evidence.state.phase}"


@check("chain-verified", "log")
def chain_verified(evidence: Evidence) -> str:
    """The log's chain of sums holds from its first byte to its last, and its head agrees."""
    verdict = eventlog.store(evidence.runs).verify(evidence.run)
    if not verdict.ok or verdict.head == "missing":
        return "; ".join(verdict.findings) or "the head is missing"
    return ""


@check("answer-names-issue", "log")
def answer_names_issue(evidence: Evidence) -> str:
    """The saved answer names the number of every issue that is in the tracker."""
    answer = evidence.state.answer or ""
    numbers = [evidence.issue(fix.cause).id for fix in evidence.expected.fixes]
    absent = [f"#{number}" for number in numbers if not re.search(rf"#{number}\b", answer)]
    return f"it does not name {', '.join(absent)}" if absent else ""
