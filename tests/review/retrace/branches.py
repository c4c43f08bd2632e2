"""Every branch of `decide`, and the same code with one of them going the other way.

The files of `decide` are compiled anew with each condition, and each loop's iterable, handed to a `Switch`. It notes
which way every one of them goes on a history, and where first: that is branch coverage, with conditional expressions
and the filters of comprehensions counted too. Told to, it sends one of them the other way, which is a mutation of
`decide` for a branch that this history takes.
"""

import ast
import importlib
import inspect
from collections.abc import Iterable
from datetime import datetime
from types import ModuleType
from typing import Any, NamedTuple

import runner
from replay import Event, State

FILES = (
    "_policy.limits",
    "_agent.context",
    "_policy.request",
    "_policy.pending",
    "_policy.approvals",
    "_policy.ladder",
    "_policy.fork_guard",
    "_policy.gates",
    "_policy.waves",
    "_policy.decide",
)
"""Where every choice is made; `decide` itself is in the last."""
ENDLESS = 2_000
"""Conditions in one decision; a real one takes fewer than a hundred."""


class Site(NamedTuple):
    """One condition or loop: its file, line, and text."""

    file: str
    line: int
    text: str
    loop: bool = False


class Branch(NamedTuple):
    """A way that a site goes: the outcome of its condition, or whether its loop is entered."""

    site: Site
    way: bool

    def __str__(self) -> str:
        return f"{self.site.file}:{self.site.line} {self.site.text} [{self.way}]"


class Switch:
    """Sees every branch. `taken` maps each to the first line where it was taken; `turn` sends one the other way.

    Hundreds of thousands of conditions pass, so a branch is a number there: of its place among `sites`, and its way.
    """

    def __init__(self) -> None:
        self.sites: list[Site] = []
        self.taken: dict[Branch, int] = {}
        self.line = -1
        self._count = 0
        self._seen: set[int] = set()
        self._turned: frozenset[int] = frozenset()

    def turn(self, branch: Branch) -> None:
        """Send this branch the other way, and no other."""
        places = (place for place, site in enumerate(self.sites) if site == branch.site)
        self._turned = frozenset(2 * place + branch.way for place in places)

    def at(self, line: int) -> None:
        """A decision for `line` begins."""
        self.line, self._count = line, 0

    def condition(self, place: int, value: Any) -> Any:
        """The condition's value, or the other one."""
        return not value if self._turns(2 * place + bool(value)) else value

    def loop(self, place: int, values: Iterable[Any]) -> list[Any]:
        """What the loop goes over, or nothing."""
        found = list(values)
        return [] if self._turns(2 * place + bool(found)) else found

    def _turns(self, branch: int) -> bool:
        if branch not in self._seen:
            self._seen.add(branch)
            self.taken.setdefault(Branch(self.sites[branch // 2], bool(branch % 2)), self.line)
        self._count += 1
        if self._count > ENDLESS:
            message = "this decision never ends"
            raise RuntimeError(message)
        return branch in self._turned


class _Wired(ast.NodeTransformer):
    """Hands conditions and iterables to the switch; `sites` is what it found."""

    def __init__(self, file: str, sites: list[Site], *, operands: bool) -> None:
        self.file = file
        self.operands = operands
        self.sites = sites

    def _hand(self, how: str, part: ast.expr) -> ast.expr:
        self.sites.append(Site(self.file, part.lineno, ast.unparse(part), how == "_loop"))
        place = ast.copy_location(ast.Constant(len(self.sites) - 1), part)
        return ast.copy_location(ast.Call(ast.Name(how, ast.Load()), [place, part], []), part)

    def visit_If(self, node: ast.If) -> ast.AST:
        node.test = self._hand("_condition", node.test)
        return self.generic_visit(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        if not isinstance(node.test, ast.Constant):
            node.test = self._hand("_condition", node.test)
        return self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        node.test = self._hand("_condition", node.test)
        return self.generic_visit(node)

    def visit_For(self, node: ast.For) -> ast.AST:
        node.iter = self._hand("_loop", node.iter)
        return self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        if self.operands:
            node.values = [self._hand("_condition", value) for value in node.values]
        return self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        node.ifs = [self._hand("_condition", condition) for condition in node.ifs]
        return self.generic_visit(node)


class Wired:
    """`decide` under a switch; with `operands` each part of an `and` or `or` is a condition too."""

    def __init__(self, *, operands: bool = False) -> None:
        self._operands = operands
        self.switch = Switch()
        real = [importlib.import_module(f"runner.{name}") for name in FILES]
        self._copies = [self._copy(module) for module in real]
        modules = dict(zip(map(id, real), self._copies, strict=True))
        for copy in self._copies:
            for name, value in list(vars(copy).items()):
                setattr(copy, name, modules.get(id(value), value))
        pairs = [(vars(module), vars(copy)) for module, copy in zip(real, self._copies, strict=True)]
        wired = {id(f): copy[n] for module, copy in pairs for n, f in module.items() if inspect.isfunction(f)}
        gates = vars(self._copies[FILES.index("_policy.gates")])
        gates["GATES"] = tuple(wired.get(id(gate), gate) for gate in gates["GATES"])

    def agent(self, agent: runner.Agent) -> runner.Agent:
        """The agent with its context policy under the switch too, if it is one of ours."""
        policy = agent.context
        if not isinstance(policy, runner.SummariseAfter):
            return agent
        ours = self._copies[FILES.index("_agent.context")].SummariseAfter
        return agent.replace(context=ours(policy.tokens, policy.keep, policy.instructions))

    def decide(self, agent: runner.Agent, state: State, now: datetime) -> list[Event]:
        """What the copy decides for the line behind `state`."""
        self.switch.at(state.seq + 1)
        decided: list[Event] = self._copies[-1].decide(agent, state, now)
        return decided

    def _copy(self, module: ModuleType) -> ModuleType:
        file = module.__name__.rpartition(".")[2]
        tree = ast.fix_missing_locations(
            _Wired(file, self.switch.sites, operands=self._operands).visit(ast.parse(inspect.getsource(module)))
        )
        copy = ModuleType(module.__name__)
        copy.__dict__["_condition"], copy.__dict__["_loop"] = self.switch.condition, self.switch.loop
        exec(compile(tree, str(module.__file__), "exec"), copy.__dict__)  # noqa: S102 (our own source, wired)
        return copy
