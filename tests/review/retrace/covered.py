"""Prints the branches of `decide` that coverage sees a retrace of the batch take: file, line, how many ways.

A program of its own: coverage can measure one thing at a time, and a test session may be measured already.
"""

import importlib
import json

import coverage

import runner
from tests.review.retrace.branches import FILES
from tests.review.retrace.histories import GOLDEN, batch


def main() -> None:
    """Measure and print."""
    history = batch()
    modules = [importlib.import_module(f"runner.{name}") for name in FILES]
    files = [str(module.__file__) for module in modules]
    measured = coverage.Coverage(data_file=None, config_file=False, branch=True, include=files)
    measured.start()
    runner.review.retrace("batch", history.agent, runs=GOLDEN)
    measured.stop()
    rows = []
    for name, file in zip(FILES, files, strict=True):
        for line, (_, taken) in sorted(measured.branch_stats(file).items()):
            rows.append((name.rpartition(".")[2], line, taken))
    print(json.dumps(rows))  # noqa: T201 (what the test reads)


if __name__ == "__main__":
    main()
