"""The rules of the house, each a function from a parsed product to the sentences that say where it is broken.

A rule that nothing checks is a wish. The table says what each folder may import. eventlog knows no event, replay and
the policy are pure, only the engine acts, and apps have no privilege that a user's own code lacks.
"""

from __future__ import annotations

import ast
import graphlib
import statistics
import sys
from typing import TYPE_CHECKING, TypeGuard

from tests.structure.sources import PACKAGES, mentions, module_of, public

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.structure.sources import Module, Product

_HOUSE = """
eventlog         | msgspec structlog | eventlog.postgres
eventlog.postgres | msgspec psycopg              | eventlog
eventlog.simdisk | msgspec                       | eventlog
replay           | msgspec                       | eventlog
_urls            |                               |
_stops           |                               | eventlog _urls
errors           |                               | eventlog _stops _urls
_clock           |                               |
_logging         | structlog                     | _agent
_transport       |                               |
_siblings        |                               | eventlog replay
_agent           | msgspec pydantic typing_extensions | eventlog replay errors _urls
_policy          | msgspec                       | eventlog replay errors _agent
_runs            | msgspec                       | eventlog replay errors _agent _policy _clock _logging
_engine          | msgspec                       | eventlog replay errors _agent _policy _clock _logging _runs _transport
_review          | msgspec                       | eventlog replay errors _agent _policy _clock _runs
_service         |                               | eventlog replay errors _agent _policy _clock _logging _runs _engine
_durable         | msgspec                       | eventlog replay errors _agent _policy _clock _runs _engine _service
review           |                               | _agent _policy _review
runner           |                               | eventlog replay errors _agent _policy _clock _runs _engine _service _durable review _siblings
models           | msgspec anthropic openai httpx httpx2 genai_prices             | replay errors _agent _transport
web              |                               | eventlog runner errors _transport
mcp              | httpx2 jsonschema mcp mcp_types pydantic referencing           | runner errors _transport web
procrastinate    | procrastinate                 | eventlog errors _agent _logging _engine _service
otel             | opentelemetry                 | eventlog replay runner
adapters         |                               | _agent _durable
pydantic_ai      | pydantic_ai pydantic_core    | replay runner errors _agent adapters models
langchain        | langchain langchain_core langgraph pydantic_core | replay errors _agent adapters models
_cli             | msgspec structlog click rich jinja2 markupsafe mcp uvicorn     | eventlog eventlog.postgres replay runner errors review models ui
commands         |                               | _cli
ui               | click jinja2 msgspec starlette                                 | eventlog replay runner review _agent _cli
testing          | msgspec pytest                | eventlog eventlog.simdisk replay runner errors review
triage           | msgspec click rich httpx pytest starlette uvicorn  | eventlog replay runner errors review commands testing web
"""  # noqa: E501
"""Each folder, or module beside folders: the libraries it may use, and the folders of ours that it may import."""


def _whole(name: str) -> str:
    return name if name.partition(".")[0] in PACKAGES else f"runner.{name}"


def _row(line: str) -> tuple[str, set[str]]:
    name, libraries, folders = line.split("|")
    return _whole(name.strip()), {*libraries.split(), *(_whole(one) for one in folders.split())}


MAY_IMPORT = dict(_row(line) for line in _HOUSE.strip().splitlines())
PURE = {"replay", "runner._policy", "runner._agent.context", "runner._agent.keys"}
APPS = {"runner._cli", "runner.commands", "runner.testing", "runner.triage"}
"""They use public names only, as a user's own code would."""
CORE = frozenset({"runner._agent", "runner._policy", "runner._runs", "runner._review", "runner.review"})
"""Where nothing acts: `runner._engine` alone calls tools and models, and starts tasks, threads and processes."""
ACTS = {"asyncio", "concurrent", "multiprocessing", "signal", "socket", "subprocess", "threading"}
LOCKS = {"threading", "threading.Lock"}
ACTING_CALLS = {"ask", "function"}
MOST_NAMES = 170
"""What the three packages offer together."""

PURE_IMPORTS = {
    *PACKAGES, "__future__", "abc", "base64", "binascii", "bisect", "collections", "contextlib", "copy", "dataclasses",
    "datetime", "decimal", "difflib", "enum", "fractions", "functools", "graphlib", "hashlib", "heapq", "itertools",
    "json", "keyword", "math", "msgspec", "numbers", "operator", "re", "statistics", "string", "textwrap", "types",
    "typing", "unicodedata",
}  # fmt: skip
CLOCKS = {"datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today"}
DISK_VERBS = {f"eventlog.{verb}" for verb in ("Directory", "store")}
IMPURE_CALLS = {"__import__", "breakpoint", "eval", "exec", "hash", "id", "input", "open", "print"}

OS_MODULES = {
    "fcntl", "fileinput", "glob", "io", "mmap", "msvcrt", "os", "posix", "secrets", "shutil", "socket",
    "sqlite3", "subprocess", "tempfile", "time",
}  # fmt: skip
PATH_VERBS = {
    "chmod", "exists", "glob", "hardlink_to", "is_dir", "is_file", "is_symlink", "iterdir", "lstat", "mkdir",
    "read_bytes", "read_text", "readlink", "rename", "resolve", "rglob", "rmdir", "samefile", "stat", "symlink_to",
    "touch", "unlink", "write_bytes", "write_text",
}  # fmt: skip

LONGEST, MEDIAN = 300, 150


def arrows(modules: Product) -> Iterator[str]:
    """Refuse an import, of a folder or a library, that the folder's row does not allow."""
    for module in modules.values():
        own = folder(module.name)
        if own not in MAY_IMPORT:
            yield module.at(1, f"{own} has no row: say what it may import")
            continue
        for found in mentions(module):
            target = module_of(found.name, modules)
            other = folder(target) if target else found.name.partition(".")[0]
            if other not in MAY_IMPORT[own] | sys.stdlib_module_names | {own}:
                yield module.at(found.line, f"{own} reaches {found.name}, against the arrows")


def circles(modules: Product) -> Iterator[str]:
    """Refuse a circle of imports between modules; the first one found is named."""
    graph = {
        module.name: {target for found in module.imports if (target := module_of(found.name, modules))} - {module.name}
        for module in modules.values()
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        yield f"a circle of imports: {' <- '.join(error.args[1])}"


def purity(modules: Product) -> Iterator[str]:
    """Refuse a clock, a disk, a tool or randomness in a pure folder."""
    for module in modules.values():
        if PURE & {module.name, folder(module.name)}:
            yield from _impurities(module)


def acts(modules: Product) -> Iterator[str]:
    """Refuse tasks, threads, processes and calls of tools and models in the core outside `_engine`."""
    for module in modules.values():
        if folder(module.name) not in CORE:
            continue
        for found in mentions(module):
            if found.name.partition(".")[0] in ACTS and found.name not in LOCKS:
                yield module.at(found.line, f"reaches {found.name}; only _engine acts")
        for name, line in _calls(module):
            if "." in name and name.rpartition(".")[2] in ACTING_CALLS:
                yield module.at(line, f"calls {name}; only _engine acts")


def faces(modules: Product) -> Iterator[str]:
    """Refuse a private name of another package; to an app, runner's core and adapters and other apps are others too."""
    for module in modules.values():
        for found in mentions(module):
            if _crosses(module, found.name) and (part := _hidden(found.name, modules)):
                yield module.at(found.line, f"{found.name} is not public: {part} is no name that its package offers")


def disk(modules: Product) -> Iterator[str]:
    """Refuse the operating system in eventlog outside `_disk`, so that one seam can fail every call there is."""
    for module in modules.values():
        if folder(module.name) != "eventlog" or module.name in {
            "eventlog._disk",
            "eventlog._descriptor",
            "eventlog._flushes",
            "eventlog._in_child",
        }:
            continue
        for found in module.imports:
            if found.name.partition(".")[0] in OS_MODULES:
                yield module.at(found.line, f"imports {found.name}; only _disk touches the operating system")
        for name, line in _calls(module):
            owner, _, verb = name.rpartition(".")
            if name == "open" and not _binds(module, "open"):
                yield module.at(line, "calls the builtin open; only _disk touches the operating system")
            if verb in PATH_VERBS and owner and not owner.lower().endswith("disk"):
                yield module.at(line, f"calls {name}; only _disk touches the operating system")


def logging(modules: Product) -> Iterator[str]:
    """Refuse to configure structlog or logging outside the command: that is the application's choice."""
    for module in modules.values():
        if module.name.startswith("runner._cli"):
            continue
        for found in mentions(module):
            if found.name.startswith(("structlog.configure", "logging.basicConfig", "logging.config")):
                yield module.at(found.line, f"{found.name}: the library never configures logging")


def sizes(modules: Product) -> Iterator[str]:
    """Refuse a file above 300 lines, and a median above 150."""
    for module in modules.values():
        if module.lines > LONGEST:
            yield module.at(module.lines, f"{module.lines} lines; split it along a noun")
    median = statistics.median([module.lines for module in modules.values()] or [0])
    if median > MEDIAN:
        yield f"the median file has {median} lines"


def names(modules: Product) -> Iterator[str]:
    """Refuse more public names than a reader can know."""
    offered = sum(len(public(modules[package]) or ()) for package in PACKAGES if package in modules)
    if offered > MOST_NAMES:
        yield f"the packages offer {offered} names together; {MOST_NAMES} is the most"


def folder(name: str) -> str:
    """Give the folder of a module: the part below its package that has a row, else the package."""
    parts = name.split(".")
    below = ".".join(parts[:2])
    return below if parts[0] == "runner" or below in MAY_IMPORT else parts[0]


def _impurities(module: Module) -> Iterator[str]:
    for found in module.imports:
        if found.name.partition(".")[0] not in PURE_IMPORTS:
            yield module.at(found.line, f"imports {found.name}, which is not known to be pure")
    for found in mentions(module):
        if found.name in CLOCKS:
            yield module.at(found.line, f"reads a clock: {found.name}")
        if found.name in DISK_VERBS:
            yield module.at(found.line, f"reaches the disk: {found.name}")
    hashing = {line for node in ast.walk(module.tree) if _is_hash(node) for line in _span(node)}
    for name, line in _calls(module):
        if name in IMPURE_CALLS and not _binds(module, name) and line not in hashing:
            yield module.at(line, f"calls {name}, whose answer is not in the log")


def _is_hash(node: ast.AST) -> TypeGuard[ast.FunctionDef]:
    return isinstance(node, ast.FunctionDef) and node.name == "__hash__"


def _span(node: ast.FunctionDef) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _crosses(module: Module, target: str) -> bool:
    """Whether a name is another's: of another package, or to an app, of another folder."""
    package = target.partition(".")[0]
    if package not in PACKAGES or package != module.package:
        return package in PACKAGES
    own, other = folder(module.name), folder(target)
    return own in APPS and own != other and (own, other) != ("runner.commands", "runner._cli")


def _hidden(name: str, modules: Product) -> str | None:
    """Give the first part of a dotted name that no package offers; attributes of an offered name are its own affair."""
    first, *rest = name.split(".")
    package = modules.get(first)
    for part in rest:
        if part.startswith("__") and part.endswith("__"):
            return None
        inner = package and modules.get(f"{package.name}.{part}")
        if not part.startswith("_") and inner:
            package = inner
            continue
        offered = public(package) if package else None
        if offered is not None:
            return None if part in offered else part
        return part if part.startswith("_") or part == "*" else None
    return None


def _calls(module: Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node.lineno


def _binds(module: Module, name: str) -> bool:
    return any(
        (isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name)
        or (isinstance(node, ast.alias) and (node.asname or node.name) == name)
        for node in ast.walk(module.tree)
    )
