"""The rules of the house, each a function from a parsed product to the sentences that say where it is broken.

They stand here because a rule that nothing checks is a wish: the arrows keep eventlog free of meaning, replay free of
the world, and the apps free of privileges that a user's own code would not have.
"""

from __future__ import annotations

import ast
import graphlib
import statistics
import sys
from typing import TYPE_CHECKING, TypeGuard

from tests.house.sources import PACKAGES, mentions, module_of, public

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.house.sources import Module, Product

RANK = {package: rank for rank, package in enumerate(PACKAGES)}
CORE, ADAPTER, APP = range(3)
RING_NAMES = ("core", "an adapter", "an app")
RINGS = {
    "errors": CORE,
    "models": ADAPTER,
    "web": ADAPTER,
    "mcp": ADAPTER,
    "crashtest": APP,
    "triage": APP,
    "__main__": APP,
}
THIRD_PARTY = {"msgspec", "portalocker", "structlog"}

PURE_RUNNER = {
    "runner._decide", "runner._fence", "runner._ladder", "runner._keys", "runner._limits", "runner._context",
    "runner._guarantees",
}  # fmt: skip
PURE_IMPORTS = {
    *PACKAGES, "__future__", "abc", "base64", "binascii", "bisect", "collections", "contextlib", "copy", "dataclasses",
    "datetime", "decimal", "difflib", "enum", "fractions", "functools", "graphlib", "hashlib", "heapq", "itertools",
    "json", "keyword", "math", "msgspec", "numbers", "operator", "re", "statistics", "string", "textwrap", "types",
    "typing", "unicodedata",
}  # fmt: skip
CLOCKS = {"datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today"}
DISK_VERBS = {
    f"eventlog.{verb}" for verb in ("create", "fork", "header", "lock_holder", "open", "read", "runs", "scan", "verify")
}
IMPURE_CALLS = {"__import__", "breakpoint", "eval", "exec", "hash", "id", "input", "open", "print"}

OS_MODULES = {
    "fcntl", "fileinput", "glob", "io", "mmap", "msvcrt", "os", "portalocker", "posix", "secrets", "shutil", "socket",
    "sqlite3", "subprocess", "tempfile", "time",
}  # fmt: skip
PATH_VERBS = {
    "chmod", "exists", "glob", "hardlink_to", "is_dir", "is_file", "is_symlink", "iterdir", "lstat", "mkdir",
    "read_bytes", "read_text", "readlink", "rename", "resolve", "rglob", "rmdir", "samefile", "stat", "symlink_to",
    "touch", "unlink", "write_bytes", "write_text",
}  # fmt: skip

LONGEST, MEDIAN = 300, 150


def arrows(modules: Product) -> Iterator[str]:
    """Refuse an import against the arrows: runner may import replay and eventlog, replay eventlog, eventlog neither."""
    for module in modules.values():
        for found in module.imports:
            target = found.name.partition(".")[0]
            if RANK.get(target, -1) > RANK[module.package]:
                yield module.at(found.line, f"{module.package} imports {found.name}, against the arrow")


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
    """Refuse a clock, a disk, a tool or randomness in replay and in the pure files of runner's core."""
    for module in modules.values():
        if module.package == "replay" or module.name in PURE_RUNNER:
            yield from _impurities(module)


def rings(modules: Product) -> Iterator[str]:
    """Refuse an import in runner that points outwards: core knows no adapter, an adapter no app."""
    for module in modules.values():
        if module.package != "runner":
            continue
        own = ring(module.name)
        if own is None:
            yield module.at(1, f"{module.name} stands in no ring: name it _private, or add it to the adapters or apps")
            continue
        for found in mentions(module):
            target = module_of(found.name, modules) or ""
            other = ring(target)
            if other is not None and other > own:
                yield module.at(found.line, f"{RING_NAMES[own]} reaches {found.name}, {RING_NAMES[other]}")


def faces(modules: Product) -> Iterator[str]:
    """Refuse a private name of another package; to an app, runner's core and adapters and other apps are others too."""
    for module in modules.values():
        for found in mentions(module):
            if _crosses(module, found.name) and (part := _hidden(found.name, modules)):
                yield module.at(found.line, f"{found.name} is not public: {part} is no name that its package offers")


def dependencies(modules: Product) -> Iterator[str]:
    """Refuse third-party imports in the core packages beyond msgspec, portalocker and structlog."""
    allowed = THIRD_PARTY | set(PACKAGES) | sys.stdlib_module_names
    for module in modules.values():
        if ring(module.name) in {ADAPTER, APP}:
            continue
        for found in module.imports:
            if found.name.partition(".")[0] not in allowed:
                yield module.at(found.line, f"the core imports {found.name}")


def disk(modules: Product) -> Iterator[str]:
    """Refuse the operating system in eventlog outside `_disk`, so that one seam can fail every call there is."""
    for module in modules.values():
        if module.package != "eventlog" or module.name == "eventlog._disk":
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


def ring(name: str) -> int | None:
    """Give the ring of a dotted name in runner; None for a name elsewhere, or of a module that nobody placed."""
    package, _, rest = name.partition(".")
    if package != "runner":
        return None
    part = rest.partition(".")[0]
    if part in RINGS:
        return RINGS[part]
    if part.startswith("_cli"):
        return APP
    return CORE if not part or part.startswith("_") else None


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


def _app(name: str) -> str:
    part = name.split(".")[1] if "." in name else ""
    return "_cli" if part.startswith("_cli") else part


def _crosses(module: Module, target: str) -> bool:
    package = target.partition(".")[0]
    if package not in PACKAGES:
        return False
    return package != module.package or (ring(module.name) == APP and _app(target) != _app(module.name))


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
