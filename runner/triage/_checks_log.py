"""The checks that compare the log with the tracker, the recording and itself.

The sums are taken from the events one by one, not from the state, so that a mistake in the fold does not confirm
itself. Each raises what is not as it should be.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import eventlog
import runner
import runner.testing
from replay.events import AttemptMarked, ModelAsked, ModelFailed, ReplySaved, ResultRecorded, RunForked, RunResumed
from replay.messages import CostBound
from runner.triage._evidence import Evidence, check, require
from runner.triage._task import Fix, Same
from runner.triage._tracker_store import Comment, Issue


@check("log")
def same_key(evidence: Evidence) -> None:
    """Each issue came under the key that the log holds for the call that filed it, in every one of its attempts."""
    _under_keys(evidence, "issue_file", evidence.issues)


@check("log")
def comments_same_key(evidence: Evidence) -> None:
    """Each comment came under the key that the log holds for the call that made it, and each such call made one."""
    _under_keys(evidence, "issue_comment", evidence.comments)


def _under_keys(evidence: Evidence, tool: str, made: Sequence[Issue | Comment]) -> None:
    keys, stored = evidence.keys(tool), Counter(one.key for one in made)
    require(keys, f"the log holds no attempt of {tool}")
    twice = [str(key) for key, number in stored.items() if number > 1]
    require(not twice, f"several came under {', '.join(twice)}")
    require(stored.keys() == keys, f"the tracker holds {sorted(map(str, stored))}, the log {sorted(keys)}")


@check("log")
def same_spend(evidence: Evidence) -> None:
    """Turns, tokens and dollars of the replies are those of the recording: none paid twice, none missing."""
    recorded, spent = runner.testing.RecordedModel(evidence.task.recording).replies, evidence.state.spent
    turns = sum(purpose == "turn" for _, purpose in recorded)
    due = [(reply.usage.input_tokens, reply.usage.output_tokens, reply.dollars) for reply in recorded.values()]
    _counted(turns, due, (evidence.state.turns, spent.input_tokens, spent.output_tokens, spent.dollars))


@check("log")
def lost_asks_accounted(evidence: Evidence) -> None:
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
    require(asked is None, "an ask is still without a reply")
    due = [(bound.input_tokens, bound.output_tokens, bound.dollars) for bound in lost]
    spent = evidence.state.spent
    counted = (spent.lost_asks, spent.lost_input_tokens, spent.lost_output_tokens, spent.lost_dollars)
    _counted(len(lost), due, counted)


def _counted(number: int, each: Sequence[tuple[int, int, float | None]], counted: tuple[int, int, int, float]) -> None:
    """Require that a number, tokens and dollars were counted as they should be, summed over `each`."""
    due = (number, *(sum(one[at] or 0 for one in each) for at in range(3)))
    is_ok = counted[:3] == due[:3] and math.isclose(counted[3], due[3], abs_tol=1e-9)
    require(is_ok, f"the count, the tokens in and out and the dollars are {counted}, not {due}")


@check("log")
def settled(evidence: Evidence) -> None:
    """Every call of every reply has exactly one result, and none is in doubt."""
    results = Counter(event.call for event in evidence.events if isinstance(event, ResultRecorded))
    wrong = {call: results[call] for call in evidence.calls if results[call] != 1}
    unknown, state = sorted(results.keys() - evidence.calls.keys()), evidence.state
    require(evidence.calls, "the log holds no call")
    require(not wrong, f"results by call: {wrong}")
    require(not unknown and not state.in_doubt, f"results of no call: {unknown}; in doubt: {list(state.in_doubt)}")
    require(state.phase == "done", f"the run is in phase {state.phase}")


@check("log")
def chain_verified(evidence: Evidence) -> None:
    """The log's chain of sums holds from its first byte to its last, and its head agrees."""
    verdict = eventlog.store(evidence.runs).verify(evidence.run)
    require(verdict.ok and verdict.head != "missing", "; ".join(verdict.findings) or "the head is missing")


@check("log")
def answer_names_issue(evidence: Evidence) -> None:
    """The saved answer names the number of every issue that is in the tracker."""
    numbers = [evidence.issue(fix.cause).id for fix in evidence.task.expected.fixes]
    absent = [f"#{number}" for number in numbers if not re.search(rf"#{number}\b", evidence.state.answer or "")]
    require(not absent, f"it does not name {', '.join(absent)}")


@check("log", each="same")
def second_filing_refused(evidence: Evidence, same: Same) -> None:
    """A second filing of a cause was refused with the first one's number, and was never tried."""
    refused = {e.call: e for e in evidence.events if isinstance(e, ResultRecorded) and e.how == "refused"}
    filings = [i for i in evidence.called("issue_file") if i in refused]
    again = [i for i in filings if json.loads(evidence.calls[i].arguments)["cause"] == same.cause]
    require(len(again) == 1, f"{len(again)} filings of {same.cause} were refused")
    first, text = refused[again[0]].first, refused[again[0]].text
    names_it = first in evidence.called("issue_file") and f'"issue": {evidence.issue(same.cause).id}' in text
    require(names_it, f"the refusal says {text!r}")
    tried = any(isinstance(e, AttemptMarked) and e.call == again[0] for e in evidence.events)
    require(not tried, f"call {again[0]} was tried")


@check("log")
def corrected(evidence: Evidence) -> None:
    """A first patch did not pass its test, and a second one of the same file did."""
    require(evidence.task.expected.corrected, "the task has no such crash")
    for fix in (fix for fix in evidence.task.expected.fixes if fix.crash in evidence.task.expected.corrected):
        done = [(e.call, e.text) for e in evidence.events if isinstance(e, ResultRecorded)]
        said = "".join(_said(evidence, call, text, fix) for call, text in done)
        is_so = re.fullmatch("-+p-+p[+]+", said)
        require(is_so, f"the log tells {said!r} of {fix.crash}: p a patch, + and - its test")


def _said(evidence: Evidence, call: str, text: str, fix: Fix) -> str:
    """One letter for a result: `p` for a patch of the fix's file, `+` or `-` for a run of its test alone."""
    made = evidence.calls[call]
    path = json.loads(made.arguments).get("path")
    if made.tool == "code_patch" and path == fix.patch.path:
        return "p"
    if made.tool == "test_run" and path == fix.test:
        return "+" if json.loads(text)["passed"] else "-"
    return ""


@check("log")
def summarised(evidence: Evidence) -> None:
    """The conversation was summarised once on the way, and that summary was asked and paid for once."""
    asked = [event for event in evidence.events if isinstance(event, ModelAsked | ReplySaved)]
    saved = [a.purpose for a, b in pairwise(asked) if isinstance(a, ModelAsked) and isinstance(b, ReplySaved)]
    require(saved.count("summary") == 1, f"{saved.count('summary')} summaries were saved")
    is_between = 0 < saved.index("summary") < len(saved) - 1
    require(is_between and evidence.state.summary is not None, "it stands at an end of the run")
