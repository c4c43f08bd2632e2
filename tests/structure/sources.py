"""The product as its imports show it: parsed, never run, so that a broken tree can be examined like ours.

Imports count wherever they stand. One inside a function or under `TYPE_CHECKING` still says that a file knows of
another, and an arrow drawn late is the same arrow.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGES = ("eventlog", "replay", "runner")
DATA = "runner/triage/world"
"""The application that a triage run repairs. It lies in the wheel, and it is not our code."""


@dataclass(frozen=True)
class Mention:
    """A dotted name that a module reaches, by importing it or through an import: `eventlog._frame.parse`."""

    name: str
    line: int


@dataclass(frozen=True)
class Module:
    """One product file. `name` is dotted, `where` the path from the root of the tree, for messages."""

    name: str
    where: str
    lines: int
    tree: ast.Module
    imports: tuple[Mention, ...]

    @property
    def package(self) -> str:
        """The top-level package."""
        return self.name.split(".", maxsplit=1)[0]

    def at(self, line: int, says: str) -> str:
        """Word a violation so that an editor can jump to it."""
        return f"{self.where}:{line}: {says}"


Product = dict[str, Module]


def files(root: Path) -> list[Path]:
    """Every Python file of the three packages under `root`, the triage data left out."""
    data = root / DATA
    found = (path for package in PACKAGES for path in (root / package).rglob("*.py"))
    return sorted(path for path in found if data not in path.parents)


def product(root: Path) -> Product:
    """Parse the product under `root`. A package that does not exist is empty."""
    paths = {_dotted(path, root): path for path in files(root)}
    modules = {}
    for name, path in paths.items():
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text, filename=str(path))
        base = name if path.name == "__init__.py" else name.rpartition(".")[0]
        imports = tuple(_imports(tree, base))
        modules[name] = Module(name, path.relative_to(root).as_posix(), len(text.splitlines()), tree, imports)
    return modules


def module_of(name: str, modules: Product) -> str | None:
    """Give the product's module that holds the dotted `name`: the longest prefix that is a file, or None."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name or None


def public(package: Module) -> frozenset[str] | None:
    """Give the names in a package's literal `__all__`, or None when it has none that can be read."""
    for node in package.tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        named = any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)
        if named and isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.List | ast.Tuple):
            return frozenset(str(item.value) for item in node.value.elts if isinstance(item, ast.Constant))
    return None


def mentions(module: Module) -> Iterator[Mention]:
    """Give every import, and every attribute reached through an imported name, spelled out from its origin.

    `from datetime import datetime as D; D.now()` mentions `datetime.datetime.now`.
    """
    yield from module.imports
    origins = dict(_origins(module))
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute):
            path = dotted(node)
            root, _, rest = path.partition(".")
            if root in origins:
                yield Mention(f"{origins[root]}.{rest}", node.lineno)


def dotted(node: ast.expr) -> str:
    """Spell a chain of attributes; the empty string when it does not begin with a name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return base and f"{base}.{node.attr}"
    return ""


def _dotted(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree: ast.Module, base: str) -> Iterator[Mention]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Mention(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = _source(node, base)
            yield from (Mention(f"{source}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and dotted(node.func) in {
            "__import__",
            "import_module",
            "importlib.import_module",
        }:
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield Mention(first.value, node.lineno)


def _source(node: ast.ImportFrom, base: str) -> str:
    if not node.level:
        return node.module or ""
    up = base.split(".")
    parts = up[: len(up) - node.level + 1]
    return ".".join([*parts, node.module] if node.module else parts)


def _origins(module: Module) -> Iterator[tuple[str, str]]:
    base = module.name if module.where.endswith("/__init__.py") else module.name.rpartition(".")[0]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom):
            source = _source(node, base)
            yield from ((alias.asname or alias.name, f"{source}.{alias.name}") for alias in node.names)
