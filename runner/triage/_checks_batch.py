"""The checks that a batch has beyond those of one crash: comments, a cause met twice, a correction, a summary.

Those of the first half look at the workspace and the tracker alone, the others at the log. Each returns why it fails,
or an empty text.
"""

import json
import re
from collections import Counter

from replay.events import AttemptMarked, ModelAsked, ReplySaved, ResultRecorded
from runner.triage._checks_world import passes, shows
from runner.triage._evidence import Evidence, check
from runner.triage._task import Fix, Same, Unseen


@check("fix-noted", "outside", each="fixes")
def fix_noted(evidence: Evidence, fix: Fix) -> str:
    """One comment on the issue says that this group's fix is in, and names its test."""
    number = evidence.issue(fix.cause).id
    noted = [one for one in evidence.comments if one.issue == number and fix.crash in one.text and fix.test in one.text]
    return "" if len(noted) == 1 else f"{len(noted)} comments on issue {number} name {fix.crash} and {fix.test}"


@check("same-cause", "outside", each="same")
def same_cause(evidence: Evidence, same: Same) -> str:
    """A crash whose cause had its issue got one comment there and no issue; its test passes and its crash is gone."""
    first = evidence.issue(same.cause).id
    noted = [comment.issue for comment in evidence.comments if same.crash in comment.text]
    if noted != [first]:
        return f"the comments on {same.crash} are on {noted or 'no issue'}, not on {first} alone"
    return _filed(evidence, same.crash) or passes(evidence, same.test) or shows(evidence, same.crash, same.shows)


@check("comments-once", "outside")
def comments_once(evidence: Evidence) -> str:
    """No comment was made twice, and none is missing."""
    count, due = Counter((one.issue, one.text) for one in evidence.comments), evidence.expected.comments
    twice = sorted({issue for (issue, _), number in count.items() if number > 1})
    if twice:
        return f"there are equal ones on {', '.join(map(str, twice))}"
    return "" if count.total() == due else f"there are {count.total()}, not {due}"


@check("unseen-left-alone", "outside", each="unseen")
def unseen_left_alone(evidence: Evidence, unseen: Unseen) -> str:
    """A crash that can't be reproduced has no issue; the test that tried passes, as does what its users typed."""
    if why := _filed(evidence, unseen.crash) or passes(evidence, unseen.test):
        return why
    run = evidence.application(evidence.crash(unseen.crash).input)
    return f"the application ended with {run.returncode}" if run.returncode or run.stderr else ""


def _filed(evidence: Evidence, crash: str) -> str:
    filed = [issue.id for issue in evidence.issues if crash in issue.title]
    return f"issue {filed[0]} was filed for {crash}" if filed else ""


@check("second-filing-refused", "log", each="same")
def second_filing_refused(evidence: Evidence, same: Same) -> str:
    """A second filing of a cause was refused with the first one's number, and was never tried."""
    refused = {e.call: e for e in evidence.events if isinstance(e, ResultRecorded) and e.how == "refused"}
    filings = [i for i in evidence.called("issue_file") if i in refused]
    again = [i for i in filings if json.loads(evidence.calls[i].arguments)["cause"] == same.cause]
    if len(again) != 1:
        return f"{len(again)} filings of {same.cause} were refused"
    first, number = refused[again[0]].first, evidence.issue(same.cause).id
    if first not in evidence.called("issue_file") or f'"issue": {number}' not in refused[again[0]].text:
        return f"the refusal says {refused[again[0]].text!r}"
    tried = any(isinstance(e, AttemptMarked) and e.call == again[0] for e in evidence.events)
    return f"call {again[0]} was tried" if tried else ""


@check("corrected", "log")
def corrected(evidence: Evidence) -> str:
    """A first patch did not pass its test, and a second one of the same file did."""
    for fix in (fix for fix in evidence.expected.fixes if fix.crash in evidence.expected.corrected):
        done = [(e.call, e.text) for e in evidence.events if isinstance(e, ResultRecorded)]
        said = "".join(_said(evidence, call, text, fix) for call, text in done)
        if not re.fullmatch("-+p-+p[+]+", said):
            return f"the log tells {said!r} of {fix.crash}: p a patch, + and - its test"
    return "" if evidence.expected.corrected else "the task has no such crash"


def _said(evidence: Evidence, call: str, text: str, fix: Fix) -> str:
    """One letter for a result: `p` for a patch of the fix's file, `+` or `-` for a run of its test alone."""
    made = evidence.calls[call]
    path = json.loads(made.arguments).get("path")
    if made.tool == "code_patch" and path == fix.patch.path:
        return "p"
    if made.tool == "test_run" and path == fix.test:
        return "+" if json.loads(text)["passed"] else "-"
    return ""


@check("summarised", "log")
def summarised(evidence: Evidence) -> str:
    """The conversation was summarised once on the way, and that summary was asked and paid for once."""
    saved: list[str] = []
    purpose = ""
    for event in evidence.events:
        if isinstance(event, ModelAsked):
            purpose = event.purpose
        elif isinstance(event, ReplySaved):
            saved.append(purpose)
    count = saved.count("summary")
    if count != 1:
        return f"{count} summaries were saved"
    middle = saved.index("summary")
    return (
        "" if 0 < middle < len(saved) - 1 and evidence.state.summary is not None else "it stands at an end of the run"
    )
