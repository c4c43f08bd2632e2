"""An error as data: what every public error of the three packages is made of."""

from __future__ import annotations

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

    def __get__(self, _: object, kind: type[StructuredError]) -> inspect.Signature:
        if kind.__init__ is not StructuredError.__init__:
            raise AttributeError("it has an __init__ of its own")
        either, by_name = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        ways = {**dict.fromkeys(kind.__match_args__, either), **dict.fromkeys(kind._by_name, by_name)}  # noqa: SLF001
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
    __match_args__: ClassVar[tuple[str, ...]] = ()
    _by_name: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        """Note the facts; those behind `_: KW_ONLY` are given by name only."""
        own = [name for name, kind in _annotations(cls).items() if "ClassVar" not in str(kind)]
        if own:
            end = own.index("_") if "_" in own else len(own)
            cls.__match_args__ = (*dict.fromkeys((*cls.__match_args__, *own[:end])),)  # type: ignore[misc] # ours to make
            cls._by_name = (*cls._by_name, *own[end + 1 :])

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
        """Say what is true now."""
        return _Sentence().vformat(self.sentence, (), vars(self)) or super().__str__()

    def __reduce__(self) -> tuple[object, ...]:
        """Restore the facts without calling `__init__`, which may take some by keyword only."""
        return _restored, (type(self), *self.args), vars(self)


def _annotations(kind: type) -> dict[str, Any]:
    """What a class itself annotates; names that only a type checker knows are left as they are."""
    if sys.version_info >= (3, 14):
        return inspect.get_annotations(kind, format=3)  # FORWARDREF
    return inspect.get_annotations(kind)


def _restored(kind: type[StructuredError], *args: object) -> StructuredError:
    return kind.__new__(kind, *args)
