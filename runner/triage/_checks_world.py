"""The ten checks that look at the world alone: they would say the same if the log did not exist.

Each returns why it fails, or an empty text.
"""

from __future__ import annotations

import ast

from runner.triage._evidence import Evidence

_LEFT = ("__pycache__", ".pytest_cache", ".tmp-", ".refold-tmp-")
_LEFT_ENDS = (".pyc", ".tmp", ".new", ".orig", ".rej")


def one_issue(evidence: Evidence) -> str:
    """The tracker's file holds exactly one issue."""
    count = len(evidence.issues)
    return "" if count == 1 else f"it holds {count}"


def right_cause(evidence: Evidence) -> str:
    """Every issue there is names the cause of the most frequent crash."""
    causes = {issue.cause for issue in evidence.issues}
    return "" if causes == {evidence.expected.cause} else f"the causes are {sorted(causes)}"


def names_crash(evidence: Evidence) -> str:
    """The issue names the crash group in its title, and there or in its body the error and the place."""
    issue, text = evidence.issue, f"{evidence.issue.title}\n{evidence.issue.body}"
    absent = [name for name in evidence.expected.names if name not in text]
    if evidence.expected.crash not in issue.title:
        return f"the title does not name {evidence.expected.crash}"
    return f"it does not name {', '.join(absent)}" if absent else ""


def patched_once(evidence: Evidence) -> str:
    """The patch stands in its file exactly once, and nothing of what it replaced is left."""
    patch = evidence.expected.patch
    text = evidence.text(patch.path)
    new, old = text.count(patch.new), text.count(patch.old)
    return "" if (new, old) == (1, 0) else f"{patch.path} holds the new text {new} times and the old {old} times"


def only_intended(evidence: Evidence) -> str:
    """Nothing differs from what was unpacked but the new test and, by the patch alone, the patched file."""
    patch, before, after = evidence.expected.patch, evidence.before, evidence.after
    differing = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    if differing != {patch.path, evidence.expected.test}:
        return f"these differ: {', '.join(sorted(differing))}"
    if evidence.text(patch.path) != patch.apply(before[patch.path].decode()):
        return f"{patch.path} differs by more than the patch"
    return ""


def suite_green(evidence: Evidence) -> str:
    """All tests of the workspace pass."""
    suite = evidence.suite()
    return "" if suite.passed else _last(suite.output)


def test_present(evidence: Evidence) -> str:
    """The new test file is there, holds tests, and they pass."""
    path = evidence.expected.test
    tests = [
        node.name
        for node in ast.walk(ast.parse(evidence.text(path)))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    if not tests:
        return f"{path} holds no test"
    suite = evidence.suite(path)
    return "" if suite.passed else _last(suite.output)


def test_bites(evidence: Evidence) -> str:
    """In a copy of the workspace without the patch, the new test runs and fails."""
    suite = evidence.suite_without_patch(evidence.expected.test)
    return "" if suite.status == 1 else f"pytest ended with {suite.status}: {_last(suite.output)}"


def crash_gone(evidence: Evidence) -> str:
    """What the users of the crash typed does what they meant."""
    crash = next(crash for crash in evidence.task.crashes() if crash.id == evidence.expected.crash)
    run = evidence.application((*crash.input, "list"))
    if run.returncode:
        return f"the application ended with {run.returncode}: {_last(run.stderr)}"
    shown = tuple(run.stdout.split("\n")[:-1][-len(evidence.expected.shows) :])
    return "" if shown == evidence.expected.shows else f"it shows {list(shown)}"


def no_leftovers(evidence: Evidence) -> str:
    """No half-made file, cache or compiled module is left in the workspace."""
    names = [place.relative_to(evidence.world.workspace).as_posix() for place in evidence.world.workspace.rglob("*")]
    left = [name for name in names if _is_left(name.rpartition("/")[2])]
    if not names:
        return "the workspace is empty"
    return f"left over: {', '.join(sorted(left))}" if left else ""


def _is_left(name: str) -> bool:
    return name.startswith(_LEFT) or name.endswith(_LEFT_ENDS)


def _last(text: str) -> str:
    return text.strip().rpartition("\n")[2] or "it printed nothing"
