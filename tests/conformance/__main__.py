"""`make conformance`: a framework's own tests, with every agent on a log, and again with every run replayed on its log.

1. A test fails on a log only if it fails without one, or is in the list of known failures: `langchain.toml`,
   `pydantic_ai.toml`. What is new is tried again alone first, for some tests measure time.
2. A replay executes nothing and comes to the same, or its test is in the list of those.
3. A test that is in a list and is as without a log, three times one after the other, must leave the list.

pydantic-ai's source distribution has no tests: with `--pydantic-ai DIR` those of a checkout of its repository are run.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.conformance.suite import Session, Suite, langchain, pydantic_ai

SAMPLE = 3
"""`--sample` runs one test of so many."""
AGAIN = 2
"""How often more a test that is in a list and is as without a log is tried."""


def surprises(
    known: Iterable[str], first: Session, found: Callable[[Session], Iterable[str]], run: Callable[[set[str]], Session]
) -> tuple[set[str], set[str]]:
    """The tests that are found each time and not known, and those that are known and never found; tried again alone."""
    known = set(known)
    new = set(found(first)) - known
    gone = (known & (set(first.passed) | first.failed.keys())) - set(found(first))
    for _ in range(AGAIN):
        if tried := new | gone:
            again = set(found(run(tried)))
            new, gone = new & again, gone - again
    return new, gone


def judged(suite: Suite, every: int) -> list[str]:
    """Run all, or one of so many; print the figures, and give what is wrong."""
    with ThreadPoolExecutor(2) as side_by_side:
        passes = [side_by_side.submit(suite.run, replay=replay, every=every) for replay in (False, True)]
        ours, replayed = (one.result() for one in passes)
    fails, differs = suite.known("fails"), suite.known("replays")
    unlisted = ours.failed.keys() - fails.keys()
    plain = set(suite.run(unlisted, on_a_log=False).failed) if unlisted else set()
    new, gone = surprises(fails.keys() | plain, ours, lambda it: it.failed, suite.run)
    other, same = surprises(differs, replayed, lambda it: it.others, lambda tests: suite.run(tests, replay=True))
    wrong = [f"fails on a log: {test}: {ours.failed[test]}" for test in sorted(new)]
    wrong += [f"passes, and is known to fail: {test}" for test in sorted(gone - plain)]
    wrong += [f"its replay differs: {test}: {'; '.join(replayed.others[test])}" for test in sorted(other)]
    wrong += [f"its replay is the same, and is known to differ: {test}" for test in sorted(same)]
    wrong += [f"{replayed.executed} replays executed something"] * bool(replayed.executed)
    wrong += ["nothing was run on a log"] * (not ours.runs or not replayed.replays)
    apart = len(ours.passed) + len(ours.failed) - len(plain)
    figures = (
        f"{suite.framework}: {len(ours.passed)} of {apart} tests that pass without a log pass on one "
        f"({len(plain)} fail without one), {ours.runs} runs ({ours.apart} apart); "
        f"{replayed.same} of {replayed.replays} replays the same, {replayed.executed} executed anything"
    )
    reasons = [f"{test}: {fails[test]}" for test in sorted(fails.keys() & ours.failed.keys())]
    reasons += [f"replay of {test}: {differs[test]}" for test in sorted(differs.keys() & replayed.others.keys())]
    print(*reasons, *(f"without a log, too: {test}" for test in sorted(plain)), figures, sep="\n")  # noqa: T201 (a command)
    return wrong


def main() -> int:
    """Give 1 when something is not as it is known."""
    options = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    options.add_argument("--sample", action="store_true", help=f"one test of {SAMPLE}, the same ones each time")
    options.add_argument("--pydantic-ai", type=Path, metavar="DIR", help="a checkout of pydantic-ai's repository")
    given = options.parse_args()
    version = importlib.metadata.version
    suite = pydantic_ai(given.pydantic_ai) if given.pydantic_ai else langchain(version("langchain"))
    wrong = judged(suite, SAMPLE if given.sample else 1)
    print(*wrong, sep="\n", end="\n" if wrong else "")  # noqa: T201 (a command)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
