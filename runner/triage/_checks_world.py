"""The checks that look at the workspace and the tracker alone: they need no log.

Each raises what is not as it should be.
"""

import ast
from collections import Counter

from runner.triage._evidence import Evidence, check, require
from runner.triage._task import Fix, Same, Unseen

_LEFT = ("__pycache__", ".pytest_cache", ".tmp-", ".refold-tmp-")
_LEFT_ENDS = (".pyc", ".tmp", ".new", ".orig", ".rej")


@check("outside")
def one_issue(evidence: Evidence) -> None:
    """The tracker's file holds exactly one issue for each cause that was to be found."""
    count, due = Counter(issue.cause for issue in evidence.issues), len(evidence.task.expected.fixes)
    twice = [cause for cause, number in count.items() if number > 1]
    require(not twice, f"there are several for {', '.join(twice)}")
    require(count.total() == due, f"it holds {count.total()} issues, not {due}")


@check("outside")
def right_cause(evidence: Evidence) -> None:
    """Every issue there is names such a cause, and none is missing."""
    causes = {issue.cause for issue in evidence.issues}
    require(causes == {fix.cause for fix in evidence.task.expected.fixes}, f"the causes are {sorted(causes)}")


@check("outside", each="fixes")
def names_crash(evidence: Evidence, fix: Fix) -> None:
    """The issue names the crash group in its title, and there or in its body the error and the place."""
    issue = evidence.issue(fix.cause)
    absent = [name for name in fix.names if name not in f"{issue.title}\n{issue.body}"]
    require(fix.crash in issue.title, f"the title does not name {fix.crash}")
    require(not absent, f"it does not name {', '.join(absent)}")


@check("outside", each="fixes")
def patched_once(evidence: Evidence, fix: Fix) -> None:
    """The patch stands in its file exactly once, and nothing of what it replaced is left."""
    patch = fix.patch
    text = evidence.text(patch.path)
    new, old = text.count(patch.new), text.count(patch.old)
    require((new, old) == (1, 0), f"{patch.path} holds the new text {new} times and the old {old} times")


@check("outside")
def only_intended_files(evidence: Evidence) -> None:
    """Nothing differs from what was unpacked but the new tests and, by the patches alone, the patched files."""
    expected, before, after = evidence.task.expected, evidence.task.files, evidence.after
    patched = {fix.patch.path: before[fix.patch.path].decode() for fix in expected.fixes}
    differing = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    require(differing == patched.keys() | expected.tests, f"these differ: {', '.join(sorted(differing))}")
    for fix in expected.fixes:
        patched[fix.patch.path] = patched[fix.patch.path].replace(fix.patch.old, fix.patch.new, 1)
    more = [path for path, text in patched.items() if evidence.text(path) != text]
    require(not more, f"{', '.join(more)} differs by more than the patch")


@check("outside")
def suite_green(evidence: Evidence) -> None:
    """All tests of the workspace pass."""
    require(evidence.suite.passed, _last(evidence.suite.output))


@check("outside", each="fixes")
def test_present(evidence: Evidence, fix: Fix) -> None:
    """The new test file is there, holds tests, and they pass."""
    passes(evidence, fix.test)


def passes(evidence: Evidence, path: str) -> None:
    """Require that a test file is there, holds tests, and that they pass."""
    nodes = [node for node in ast.walk(ast.parse(evidence.text(path))) if isinstance(node, ast.FunctionDef)]
    tests = [node.name for node in nodes if node.name.startswith("test_")]
    require(tests, f"{path} holds no test")
    outcomes = {name.partition("[")[0].rpartition("::")[2]: how for name, how in evidence.tests(path).items()}
    red = [name for name in tests if outcomes.get(name) != "PASSED"]
    require(not red, f"not passed: {', '.join(red)}")


@check("outside", each="fixes")
def test_bites(evidence: Evidence, fix: Fix) -> None:
    """In a copy of the workspace without the patch, the new test runs and fails."""
    suite = evidence.suite_without(fix)
    require(suite.status == 1, f"pytest ended with {suite.status}: {_last(suite.output)}")


@check("outside", each="fixes")
def crash_gone(evidence: Evidence, fix: Fix) -> None:
    """What the users of the crash typed does what they meant."""
    shows(evidence, fix.crash, fix.shows)


def shows(evidence: Evidence, crash: str, lines: tuple[str, ...]) -> None:
    """Require that what the users of a crash typed shows these lines last."""
    run = evidence.application((*evidence.crash(crash).input, "list"))
    is_well = not run.stderr and run.returncode in (0, 1)
    require(is_well, f"the application ended with {run.returncode}: {_last(run.stderr)}")
    shown = tuple(run.stdout.split("\n")[:-1][-len(lines) :])
    require(shown == lines, f"it shows {list(shown)}")


@check("outside")
def no_leftovers(evidence: Evidence) -> None:
    """No half-made file, cache or compiled module is left in the workspace."""
    root = evidence.world.workspace
    places = list(root.rglob("*"))
    left = [one for one in places if one.name.startswith(_LEFT) or one.name.endswith(_LEFT_ENDS)]
    require(places, "the workspace is empty")
    require(not left, f"left over: {', '.join(sorted(one.relative_to(root).as_posix() for one in left))}")


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
    count, due = Counter((one.issue, one.text) for one in evidence.comments), evidence.task.expected.comments
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


def _last(text: str) -> str:
    return text.strip().rpartition("\n")[2] or "it printed nothing"
