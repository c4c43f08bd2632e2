"""A framework's own tests: where they are, how they are run, and what is known of them."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path

PLUGINS = Path(__file__).parent


@dataclasses.dataclass(frozen=True, kw_only=True)
class Session:
    """What one session of pytest came to, as the plugin `report` notes it."""

    passed: list[str]
    failed: dict[str, str]
    runs: int
    apart: int
    replays: int
    same: int
    executed: int
    others: dict[str, list[str]]


@dataclasses.dataclass(frozen=True)
class Suite:
    """The tests of one framework. `fails` and `replays` say of each test that is not as without a log why it is not."""

    framework: str
    folder: Path
    tests: tuple[str, ...]
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def known(self, what: str) -> dict[str, str]:
        """The tests that are known to fail, or whose replays are known to differ, with the reason."""
        found: dict[str, dict[str, str]] = tomllib.loads((PLUGINS / f"{self.framework}.toml").read_text("utf-8"))
        return found[what]

    def run(
        self, tests: Collection[str] = (), *, on_a_log: bool = True, replay: bool = False, every: int = 1
    ) -> Session:
        """Run these tests, or all of them, or one of so many."""
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder, "report.json")
            environment = {
                **os.environ,
                **self.environment,
                "PYTHONPATH": str(PLUGINS),
                "REFOLD_REPORT": str(report),
                "REFOLD_REPLAY": "1" if replay else "",
                "REFOLD_SAMPLE": str(every),
            }
            plugins = ["-p", "on_refold.report", *(["-p", f"on_refold.{self.framework}"] if on_a_log else [])]
            options = ["-n0", "-q", "-p", "no:cacheprovider", *self.options]
            command = [sys.executable, "-m", "pytest", *plugins, *options, *(sorted(tests) or self.tests)]
            said = subprocess.run(
                command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
            )
            if not report.exists():
                raise SystemExit(f"pytest did not come to an end:\n{said.stdout[-3000:]}\n{said.stderr[-3000:]}")
            return Session(**json.loads(report.read_text("utf-8")))


def langchain(version: str) -> Suite:
    """LangChain's tests of agents, from its source distribution, which pip fetches once."""
    folder = Path(sys.prefix) / f"langchain-{version}"
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=sys.prefix) as fresh:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "langchain"]
            subprocess.run([*pip, "--dest", fresh, f"langchain=={version}"], check=True)
            with tarfile.open(Path(fresh, f"{folder.name}.tar.gz")) as archive:
                archive.extractall(fresh, filter="data")
            Path(fresh, folder.name).rename(folder)
    return Suite("langchain", folder, ("tests/unit_tests/agents",), ("-o", "asyncio_mode=auto"))


def pydantic_ai(checkout: Path) -> Suite:
    """pydantic-ai's tests of tools and agents, in a checkout of its repository.

    Its detector of blocking calls is off: looking into a run's inbox is a short call of the system, by design.
    """
    return Suite(
        "pydantic_ai",
        checkout,
        ("tests/test_tools.py", "tests/test_agent.py"),
        environment={"BLOCKBUSTER_ENABLED": "false"},
    )
