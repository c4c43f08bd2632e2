"""The house holds: every rule passes on our product, and each rule fails on a tree that breaks it.

The second half matters as much as the first. A checker that no longer sees anything would pass for ever.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.structure import rules, sources
from tests.support import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Rule = Callable[[sources.Product], Iterator[str]]


RULES: list[Rule] = [
    rules.arrows,
    rules.circles,
    rules.purity,
    rules.acts,
    rules.names,
    rules.faces,
    rules.disk,
    rules.logging,
    rules.sizes,
]

SOUND = {
    "eventlog/__init__.py": """
from eventlog._log import Log, open
__all__ = ["Log", "open"]
""",
    "eventlog/_disk.py": """
import os
from pathlib import Path
def look(path): return os.stat(path), open(path), Path(path).exists()
""",
    "eventlog/_log.py": """
import structlog
from eventlog._disk import look
class Log: ...
def open(path, disk): return look(path), disk.exists(path)
def again(path, disk): return open(path, disk)
""",
    "replay/__init__.py": """
from replay._fold import fold
__all__ = ["fold"]
""",
    "replay/_fold.py": """
import msgspec
import eventlog
from datetime import datetime
class State:
    def __hash__(self): return hash(1)
def fold(lines, now: datetime): return now.isoformat(), eventlog.Log
""",
    "runner/__init__.py": """
from runner._engine.loop import start
__all__ = ["start"]
""",
    "runner/_policy/decide.py": """
import replay
def decide(state, now): return replay.fold
""",
    "runner/_engine/loop.py": """
import asyncio
import eventlog
from runner._policy.decide import decide
def start(): return eventlog.open
""",
    "runner/_cli/__init__.py": """
import click
import logging
import runner
import runner.models
logging.basicConfig()
runner.start()
""",
    "runner/errors.py": """
class RunError(Exception): ...
""",
    "runner/models/__init__.py": """
import httpx
from runner.errors import RunError
""",
    "runner/web/__init__.py": """
__all__ = ["Hook"]
class Hook: ...
""",
    "runner/triage/__init__.py": """
from runner.triage._tools import job
__all__ = ["job"]
""",
    "runner/triage/_tools.py": """
import runner
import runner.web
from runner.errors import RunError
def job(): return runner.start, runner.web.Hook, runner.__name__
""",
    "runner/triage/world/task/todo.py": """
import os, runner._engine.loop, runner.stray
""",
}
"""A small product that keeps every rule, and comes close to breaking some."""

BROKEN: list[tuple[Rule, str, str, str]] = [
    (rules.arrows, "eventlog/_log.py", "import replay", "eventlog reaches replay"),
    (
        rules.arrows,
        "eventlog/_log.py",
        "def f():\n    from runner._engine.loop import start",
        "eventlog reaches runner._engine.loop.start",
    ),
    (
        rules.arrows,
        "replay/_fold.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import runner",
        "replay reaches runner",
    ),
    (rules.arrows, "replay/_fold.py", "import importlib\nimportlib.import_module('runner')", "replay reaches runner"),
    (rules.circles, "eventlog/_disk.py", "from eventlog._log import Log", "eventlog._disk"),
    (rules.circles, "runner/_policy/decide.py", "from . import _loop", "runner._engine.loop"),
    (rules.circles, "replay/_fold.py", "from replay import State", "a circle of imports"),
    (rules.purity, "replay/_fold.py", "import time", "imports time"),
    (rules.purity, "replay/_fold.py", "import os", "imports os"),
    (rules.purity, "replay/_fold.py", "import random", "imports random"),
    (rules.purity, "replay/_fold.py", "import asyncio", "imports asyncio"),
    (rules.purity, "replay/_fold.py", "from socket import socket", "imports socket.socket"),
    (rules.purity, "replay/_fold.py", "from pathlib import Path", "imports pathlib.Path"),
    (rules.purity, "replay/_fold.py", "from datetime import datetime as D\nD.now()", "datetime.datetime.now"),
    (rules.purity, "replay/_fold.py", "import datetime as dt\nCLOCK = dt.datetime.utcnow", "datetime.datetime.utcnow"),
    (rules.purity, "replay/_fold.py", "open('log')", "calls open"),
    (rules.purity, "replay/_fold.py", "hash('a')", "calls hash"),
    (rules.purity, "replay/_fold.py", "eventlog.store('runs')", "reaches the disk: eventlog.store"),
    (rules.purity, "runner/_policy/decide.py", "import time", "imports time"),
    (rules.arrows, "runner/_engine/loop.py", "from runner.web import Hook", "_engine reaches runner.web"),
    (rules.arrows, "runner/_engine/loop.py", "def f():\n    import runner._cli", "_engine reaches runner._cli"),
    (rules.arrows, "runner/_policy/decide.py", "import runner._engine.loop", "_policy reaches runner._engine"),
    (rules.arrows, "runner/__init__.py", "from runner.triage import job", "runner reaches runner.triage.job"),
    (rules.arrows, "runner/models/__init__.py", "import runner.triage", "runner.models reaches runner.triage"),
    (rules.arrows, "runner/stray.py", "", "runner.stray has no row"),
    (rules.arrows, "eventlog/simdisk/__init__.py", "import runner", "eventlog.simdisk reaches runner"),
    (rules.acts, "runner/_policy/decide.py", "import asyncio", "reaches asyncio; only _engine acts"),
    (rules.acts, "runner/_runs/load.py", "import threading\nthreading.Thread()", "reaches threading.Thread"),
    (rules.acts, "runner/_review/audit.py", "def f(model, request): return model.ask(request)", "calls model.ask"),
    (
        rules.faces,
        "runner/triage/_tools.py",
        "from runner._engine.loop import start",
        "runner._engine.loop.start is not public",
    ),
    (rules.faces, "runner/triage/_tools.py", "runner._engine.loop.start()", "runner._engine.loop.start is not public"),
    (rules.faces, "runner/triage/_tools.py", "from runner import decide", "runner.decide is not public"),
    (rules.faces, "runner/triage/_tools.py", "from runner import *", "runner.* is not public"),
    (
        rules.faces,
        "runner/triage/_tools.py",
        "import runner as r\nr.web.Other()",
        "runner.web.Other is not public",
    ),
    (rules.faces, "runner/triage/_tools.py", "import replay\nreplay.State", "replay.State is not public"),
    (rules.faces, "runner/_cli/__init__.py", "import runner.triage._tools", "runner.triage._tools is not public"),
    (rules.faces, "runner/_engine/loop.py", "from eventlog._disk import look", "eventlog._disk.look is not public"),
    (rules.arrows, "runner/_engine/loop.py", "import httpx", "runner._engine reaches httpx"),
    (
        rules.arrows,
        "eventlog/_log.py",
        "from rich.table import Table",
        "eventlog reaches rich.table.Table",
    ),
    (rules.disk, "eventlog/_log.py", "import os", "imports os"),
    (rules.disk, "eventlog/_log.py", "from shutil import copy", "imports shutil.copy"),
    (
        rules.disk,
        "eventlog/_log.py",
        "from pathlib import Path\nPath('log').read_bytes()",
        "calls Path('log').read_bytes",
    ),
    (rules.disk, "eventlog/_log.py", "def g(path): return path.read_bytes()", "calls path.read_bytes"),
    (rules.disk, "eventlog/_head.py", "open('head')", "calls the builtin open"),
    (rules.logging, "runner/_engine/loop.py", "import structlog\nstructlog.configure()", "structlog.configure"),
    (rules.logging, "eventlog/_log.py", "from logging import basicConfig", "logging.basicConfig"),
    (rules.sizes, "replay/_fold.py", "#\n" * 301, "split it along a noun"),
]


def _build(root: Path, files: dict[str, str]) -> sources.Product:
    for where, text in files.items():
        path = root / where
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return sources.product(root)


@pytest.fixture(scope="session")
def ours() -> sources.Product:
    """Our product, parsed once."""
    return sources.product(ROOT)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_product_keeps(rule: Rule, ours: sources.Product) -> None:
    """ARCHITECTURE.md draws the house; this is what makes the drawing true."""
    assert "\n".join(rule(ours)) == ""


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_sound_product_breaks_no_rule(rule: Rule, tmp_path: Path) -> None:
    """Otherwise the trees below could fail for a reason that is not the one they were built for."""
    assert "\n".join(rule(_build(tmp_path, SOUND))) == ""


@pytest.mark.parametrize(
    ("rule", "where", "added", "says"), BROKEN, ids=[f"{row[0].__name__}-{row[3]}" for row in BROKEN]
)
def test_a_broken_product_is_named_by_file_and_fault(
    rule: Rule, where: str, added: str, says: str, tmp_path: Path
) -> None:
    """A checker that cannot fail protects nothing, and a message that does not say where costs an hour."""
    broken = list(rule(_build(tmp_path, SOUND | {where: SOUND.get(where, "") + added + "\n"})))
    assert any(says in sentence for sentence in broken)


def test_too_many_public_names_are_counted(tmp_path: Path) -> None:
    """Each is one more thing that a reader must know."""
    many = {"eventlog/__init__.py": f"__all__ = {[f'name{n}' for n in range(rules.MOST_NAMES)]}"}
    assert list(rules.names(_build(tmp_path, SOUND | many))) == [
        "the packages offer 172 names together; 170 is the most"
    ]


def test_a_median_above_150_lines_is_named(tmp_path: Path) -> None:
    """No single file is too long here; the habit is."""
    longer = {where: text + "#\n" * 160 for where, text in SOUND.items()}
    assert any("the median file has" in sentence for sentence in rules.sizes(_build(tmp_path, longer)))


def test_the_triage_data_is_not_our_code() -> None:
    """The application that a run repairs keeps its bug and its own style; it is shipped, never checked."""
    assert not [path for path in sources.files(ROOT) if "world" in path.relative_to(ROOT).parts]
    assert list((ROOT / sources.DATA).rglob("*.py"))


def test_every_package_is_seen(ours: sources.Product) -> None:
    """An empty product breaks no rule; so the one that is checked must not be empty."""
    assert {module.package for module in ours.values()} == set(sources.PACKAGES)
