"""An error as data: what every public error of the three packages is made of."""

import copyreg
import functools
import inspect
import string
import sys
from typing import Any, ClassVar, dataclass_transform


class _Sentence(string.Formatter):
    """Fills a template; the members of a tuple are listed."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return ", ".join(map(str, value)) if isinstance(value, tuple) else str(super().format_field(value, format_spec))


class _Signature:
    """How errors of a type are called; what `inspect.signature` asks for first."""

    def __get__(self, _: object, kind: Any) -> inspect.Signature:
        if kind.__init__ is not StructuredError.__init__:
            raise AttributeError("it has an __init__ of its own")
        ways: dict[str, Any] = dict.fromkeys(_facts(kind)[0], inspect.Parameter.POSITIONAL_OR_KEYWORD)
        ways |= dict.fromkeys(_facts(kind)[1], inspect.Parameter.KEYWORD_ONLY)
        none = inspect.Parameter.empty
        return inspect.Signature([inspect.Parameter(n, way, default=getattr(kind, n, none)) for n, way in ways.items()])


@dataclass_transform(eq_default=False)
class StructuredError(Exception):
    """An error declared as data, like a dataclass of its facts: it pickles and copies with them.

    `sentence` and `hint` are templates that the facts fill: `str(error)` says what is true now, `error.hint` what to do
    next. Nothing is generated for a class before its first error: there are a hundred, and few are ever raised.
    """

    sentence: ClassVar[str] = ""
    hint: ClassVar[str] = ""
    __signature__ = _Signature()

    def __init__(self, *args: Any, **facts: Any) -> None:
        """Take the facts; for a type with an `__init__` of its own, those of the type that it derives from."""
        kind: Any = next(kind for kind in type(self).__mro__ if kind.__init__ is StructuredError.__init__)  # type: ignore[misc]
        bound = kind.__signature__.bind(*args, **facts)
        bound.apply_defaults()
        vars(self).update(bound.arguments)
        self.args = (*bound.arguments.values(),)
        if "{" in self.hint:
            vars(self)["hint"] = _Sentence().vformat(self.hint, (), vars(self))

    def __str__(self) -> str:
        return _Sentence().vformat(self.sentence, (), vars(self)) or super().__str__()

    def __reduce__(self) -> tuple[object, ...]:
        """Restore the facts without calling `__init__`, which may take some by keyword only."""
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined] # as object's does


@functools.cache
def _facts(kind: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the facts of a type: those given by place or name, and those behind `_: KW_ONLY`, by name only."""
    either, by_name = dict[str, None](), dict[str, None]()
    for base in reversed(kind.__mro__[: -len(Exception.__mro__)]):
        own = [name for name, what in _annotations(base).items() if "ClassVar" not in str(what)]
        end = own.index("_") if "_" in own else len(own)
        either |= dict.fromkeys(own[:end])
        by_name |= dict.fromkeys(own[end + 1 :])
    return (*either,), (*by_name,)


def _annotations(kind: type) -> dict[str, Any]:
    """What a class itself annotates; names that only a type checker knows are left as they are."""
    if sys.version_info >= (3, 14):
        return inspect.get_annotations(kind, format=3)  # FORWARDREF
    own: dict[str, Any] = vars(kind).get("__annotations__", {})  # far less work than inspect.get_annotations
    return own
