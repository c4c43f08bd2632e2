"""The checks that a batch has beyond those of one crash: comments, a cause met twice, a correction, a summary.

Those of the first half look at the workspace and the tracker alone, the others at the log. Each raises what is not as
it should be.
"""

import json
import re
from collections import Counter
from itertools import pairwise

from replay.events import AttemptMarked, ModelAsked, ReplySaved, ResultRecorded
from runner.triage._checks_world import passes, shows
from runner.triage._evidence import Evidence, check, require
from runner.triage._task import Fix, Same, Unseen


@check("outside", each="fixes")
def fix_noted(evidence: Evidence, fix: Fix) -> None:
    """One comment on the issue says that this group's fix is in, and names its test."""
    number = evidence.issue(fix.cause).id
    noted = [one for one in evidence.comments if one.issue == number and fix.crash in one.text and fix.test in one.text]
    require(len(noted) == 1, f"{len(noted)} comments on issue {number} name {fix.crash} and {fix.test}")


@check("outside", each="same")
def same_cause(evidence: Evidence, same: Same) -> None:
    """A crash whose cause had its issue got one comment there and no issue; its test passes and its crash is gone."""
    first = evidence.issue(same.cause).id
    noted = [comment.issue for comment in evidence.comments if same.crash in comment.text]
    require(noted == [first], f"the comments on {same.crash} are on {noted or 'no issue'}, not on {first} alone")
    _not_filed(evidence, same.crash)
    passes(evidence, same.test)
    shows(evidence, same.crash, same.shows)


@check("outside")
def comments_once(evidence: Evidence) -> None:
    """No comment was made twice, and none is missing."""
    count, due = Counter((one.issue, one.text) for one in evidence.comments), evidence.expected.comments
    twice = sorted({issue for (issue, _), number in count.items() if number > 1})
    require(not twice, f"there are equal ones on {', '.join(map(str, twice))}")
    require(count.total() == due, f"there are {count.total()}, not {due}")


@check("outside", each="unseen")
def unseen_left_alone(evidence: Evidence, unseen: Unseen) -> None:
    """A crash that can't be reproduced has no issue; the test that tried passes, as does what its users typed."""
    _not_filed(evidence, unseen.crash)
    passes(evidence, unseen.test)
    run = evidence.application(evidence.crash(unseen.crash).input)
    require(not run.returncode and not run.stderr, f"the application ended with {run.returncode}")


def _not_filed(evidence: Evidence, crash: str) -> None:
    filed = [issue.id for issue in evidence.issues if crash in issue.title]
    require(not filed, f"issue {filed} was filed for {crash}")


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
    require(evidence.expected.corrected, "the task has no such crash")
    for fix in (fix for fix in evidence.expected.fixes if fix.crash in evidence.expected.corrected):
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
