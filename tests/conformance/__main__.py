"""`make conformance`: LangChain's own tests, of its source distribution, with every agent on a log.

The first pass judges the tests, the second only that each run comes to the same when it runs again on its log, with
nothing executed. pydantic-ai's source distribution has no tests; with a checkout of its repository beside, its are run
by `pytest -p on_refold.pydantic_ai`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Collection
from pathlib import Path

VERSION = "1.5.2"
SUITE = Path(sys.prefix) / f"langchain-{VERSION}"
PLUGINS = Path(__file__).parent
KNOWN = {
    "test_async_middleware_with_can_jump_to_graph_snapshot": "the drawn graph has one node more, for the run's answer",
    "test_create_agent_diagram": "the drawn graph has one node more, for the run's answer",
    "test_jump_to_is_ephemeral": "that node keeps `jump_to` in the state",
    "test_dynamic_tool_without_handler_raises_error": "LangChain looks for unknown tools only without `wrap_tool_call`",
    "test_unknown_tool_raises_error": "LangChain looks for unknown tools only without `wrap_tool_call`",
    "edit_can_redirect_to_another_tool": "a reviewer's edit to another tool is refused",
    "edit_routes_on_executed_tool": "a reviewer's edit to another tool is refused",
}
"""Tests that fail on a log, and why. Those that fail without it, too, are counted in a pass of its own."""
ONCE = {
    "StopIteration": "the test's own model, which a middleware asks beside the agent, has a reply for one life only",
    "retry_safe": "the test's middleware counts its calls, and says another thing at the second",
    "subagent_updates_emitted": "the agent in a tool does not run again, so it is not streamed again",
}
"""Replays that are not the same, by a word of the test or of what it raised, and why."""


def fetch() -> None:
    """Get the tests by pip, and lay them beside the packages."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    subprocess.run([*pip, "--dest", sys.prefix, f"langchain=={VERSION}"], check=True)
    with tarfile.open(f"{SUITE}.tar.gz") as archive:
        archive.extractall(sys.prefix, filter="data")


def run(*options: str, tests: Collection[str] = ("tests/unit_tests/agents",), replay: bool = False) -> str:
    """What pytest prints of some of them."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        *options,
        *tests,
        "-o",
        "asyncio_mode=auto",
        "-n0",
        "-q",
    ]
    environment = os.environ | {"PYTHONPATH": str(PLUGINS)} | ({"REFOLD_REPLAY": "1"} if replay else {})
    return subprocess.run(command, cwd=SUITE, env=environment, capture_output=True, text=True, check=False).stdout


def failed(printed: str) -> set[str]:
    """The tests that failed."""
    return set(re.findall(r"^FAILED (\S+)", printed, re.MULTILINE))


def main() -> int:
    """Run all, print the counts, and give 1 when something is new."""
    if not SUITE.exists():
        fetch()
    plain, ours, again = run(), run("-p", "on_refold.langchain"), run("-p", "on_refold.langchain", replay=True)
    known = {test: why for test in failed(ours) for name, why in KNOWN.items() if name in test}
    new = failed(ours) - failed(plain) - known.keys()
    if new:  # some measure time
        new = failed(run("-p", "on_refold.langchain", tests=sorted(new)))
    figures = [line for line in [*ours.splitlines(), *again.splitlines()] if line.startswith("refold: ")]
    different = [line for line in again.splitlines() if line.startswith("refold other: ")]
    others = [line for line in different if not any(word in line for word in ONCE)]
    reasons = [f"{sum(word in line for line in different)} replays: {why}" for word, why in ONCE.items()]
    counts = [printed.strip().splitlines()[-1] for printed in (plain, ours)]
    print(*counts, *(f"{test}: {why}" for test, why in known.items()), *figures, *reasons, sep="\n")  # noqa: T201 (a command)
    print(*(f"new: {one}" for one in [*sorted(new), *others]), sep="\n")  # noqa: T201 (as above)
    whole = len(figures) == 2 and " 0 executed" in figures[-1]
    return 0 if whole and not new and not others else 1


if __name__ == "__main__":
    sys.exit(main())
