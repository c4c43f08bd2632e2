"""The checks that compare the log with the tracker, the recording and itself.

The sums are taken from the events one by one, not from the state, so that a mistake in the fold does not confirm
itself. Each returns why it fails, or an empty text.
"""

import math
import re
from collections import Counter

import eventlog
import runner
import runner.testing
from replay.events import ModelAsked, ModelFailed, ReplySaved, ResultRecorded, RunForked, RunResumed
from replay.messages import CostBound
from runner.triage._evidence import Evidence, Missing, check


@check("same-key", "log")
def same_key(evidence: Evidence) -> str:
    """Each issue came under the key that the log holds for the call that filed it, in every one of its attempts."""
    keys = evidence.keys("issue_file")
    if not keys:
        raise Missing("the log holds no attempt to file an issue")
    stored = {issue.key for issue in evidence.issues}
    return "" if stored == keys else f"the tracker holds {sorted(map(str, stored))}, the log {sorted(keys)}"


@check("same-spend", "log")
def same_spend(evidence: Evidence) -> str:
    """Turns, tokens and dollars of the replies are those of the recording: none paid twice, none missing."""
    recorded, spent = runner.testing.RecordedModel(evidence.task.recording).replies, evidence.state.spent
    replies = recorded.values()
    due = (
        sum(purpose == "turn" for _, purpose in recorded),
        sum(reply.usage.input_tokens for reply in replies),
        sum(reply.usage.output_tokens for reply in replies),
    )
    is_ = (evidence.state.turns, spent.input_tokens, spent.output_tokens)
    dollars = sum(reply.dollars or 0.0 for reply in replies)
    if is_ != due:
        return f"turns, tokens in and out are {is_}, not {due}"
    same = math.isclose(spent.dollars, dollars, abs_tol=1e-9)
    return "" if same else f"the replies cost ${spent.dollars:.6f}, not ${dollars:.6f}"


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
    due = (len(lost), sum(b.input_tokens for b in lost), sum(b.output_tokens for b in lost))
    spent = evidence.state.spent
    is_ = (spent.lost_asks, spent.lost_input_tokens, spent.lost_output_tokens)
    dollars = sum(bound.dollars or 0.0 for bound in lost)
    if asked is not None:
        return "an ask is still without a reply"
    if is_ != due:
        return f"lost asks, tokens in and out are {is_}, not {due}"
    same = math.isclose(spent.lost_dollars, dollars, abs_tol=1e-9)
    return "" if same else f"lost asks count as ${spent.lost_dollars:.6f}, not ${dollars:.6f}"


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
