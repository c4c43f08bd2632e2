"""The checks that look at the workspace and the tracker alone: they need no log.

Each returns why it fails, or an empty text.
"""

import ast
from collections import Counter

from runner.triage._evidence import Evidence, check
from runner.triage._task import Fix

_LEFT = ("__pycache__", ".pytest_cache", ".tmp-", ".refold-tmp-")
_LEFT_ENDS = (".pyc", ".tmp", ".new", ".orig", ".rej")


@check("one-issue", "outside")
def one_issue(evidence: Evidence) -> str:
    """The tracker's file holds exactly one issue for each cause that was to be found."""
    count, due = Counter(issue.cause for issue in evidence.issues), len(evidence.expected.fixes)
    twice = [cause for cause, number in count.items() if number > 1]
    if twice:
        return f"there are several for {', '.join(twice)}"
    return "" if count.total() == due else f"it holds {count.total()} issues, not {due}"


@check("right-cause", "outside")
def right_cause(evidence: Evidence) -> str:
    """Every issue there is names such a cause, and none is missing."""
    causes = {issue.cause for issue in evidence.issues}
    due = {fix.cause for fix in evidence.expected.fixes}
    return "" if causes == due else f"the causes are {sorted(causes)}"


@check("names-crash", "outside", each="fixes")
def names_crash(evidence: Evidence, fix: Fix) -> str:
    """The issue names the crash group in its title, and there or in its body the error and the place."""
    issue = evidence.issue(fix.cause)
    text = f"{issue.title}\n{issue.body}"
    absent = [name for name in fix.names if name not in text]
    if fix.crash not in issue.title:
        return f"the title does not name {fix.crash}"
    return f"it does not name {', '.join(absent)}" if absent else ""


@check("patched-once", "outside", each="fixes")
def patched_once(evidence: Evidence, fix: Fix) -> str:
    """The patch stands in its file exactly once, and nothing of what it replaced is left."""
    patch = fix.patch
    text = evidence.text(patch.path)
    new, old = text.count(patch.new), text.count(patch.old)
    return "" if (new, old) == (1, 0) else f"{patch.path} holds the new text {new} times and the old {old} times"


@check("only-intended-files", "outside")
def only_intended(evidence: Evidence) -> str:
    """Nothing differs from what was unpacked but the new tests and, by the patches alone, the patched files."""
    expected, before, after = evidence.expected, evidence.task.files, evidence.after
    patched = {fix.patch.path: before[fix.patch.path].decode() for fix in expected.fixes}
    differing = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    if differing != patched.keys() | expected.tests:
        return f"these differ: {', '.join(sorted(differing))}"
    for fix in expected.fixes:
        patched[fix.patch.path] = patched[fix.patch.path].replace(fix.patch.old, fix.patch.new, 1)
    more = [path for path, text in patched.items() if evidence.text(path) != text]
    return f"{', '.join(more)} differs by more than the patch" if more else ""


@check("suite-green", "outside")
def suite_green(evidence: Evidence) -> str:
    """All tests of the workspace pass."""
    return "" if evidence.suite.passed else _last(evidence.suite.output)


@check("test-present", "outside", each="fixes")
def test_present(evidence: Evidence, fix: Fix) -> str:
    """The new test file is there, holds tests, and they pass."""
    return passes(evidence, fix.test)


def passes(evidence: Evidence, path: str) -> str:
    """Why a test file is not one whose tests are there and pass, or an empty text."""
    tests = [
        node.name
        for node in ast.walk(ast.parse(evidence.text(path)))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    if not tests:
        return f"{path} holds no test"
    outcomes = {name.partition("[")[0].rpartition("::")[2]: how for name, how in evidence.tests(path).items()}
    red = [name for name in tests if outcomes.get(name) != "PASSED"]
    return f"not passed: {', '.join(red)}" if red else ""


@check("test-bites", "outside", each="fixes")
def test_bites(evidence: Evidence, fix: Fix) -> str:
    """In a copy of the workspace without the patch, the new test runs and fails."""
    suite = evidence.suite_without(fix)
    return "" if suite.status == 1 else f"pytest ended with {suite.status}: {_last(suite.output)}"


@check("crash-gone", "outside", each="fixes")
def crash_gone(evidence: Evidence, fix: Fix) -> str:
    """What the users of the crash typed does what they meant."""
    return shows(evidence, fix.crash, fix.shows)


def shows(evidence: Evidence, crash: str, lines: tuple[str, ...]) -> str:
    """Why what the users of a crash typed does not show these lines last, or an empty text."""
    run = evidence.application((*evidence.crash(crash).input, "list"))
    if run.stderr or run.returncode not in (0, 1):
        return f"the application ended with {run.returncode}: {_last(run.stderr)}"
    shown = tuple(run.stdout.split("\n")[:-1][-len(lines) :])
    return "" if shown == lines else f"it shows {list(shown)}"


@check("no-leftovers", "outside")
def no_leftovers(evidence: Evidence) -> str:
    """No half-made file, cache or compiled module is left in the workspace."""
    names = [place.relative_to(evidence.world.workspace).as_posix() for place in evidence.world.workspace.rglob("*")]
    left = [name for name in names if (own := name.rpartition("/")[2]).startswith(_LEFT) or own.endswith(_LEFT_ENDS)]
    if not names:
        return "the workspace is empty"
    return f"left over: {', '.join(sorted(left))}" if left else ""


def _last(text: str) -> str:
    return text.strip().rpartition("\n")[2] or "it printed nothing"
