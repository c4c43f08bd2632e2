"""Type variables with defaults (PEP 696) on every CPython, without a dependency.

Type checkers bring their own stubs of typing_extensions; when a program runs it is never imported. Before 3.13 a class
that is subscribed with fewer arguments than it has variables fills in the rest by itself.
"""

import sys
import typing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeForm, TypeVar
elif sys.version_info >= (3, 13):
    TypeForm, TypeVar = type, typing.TypeVar
else:
    TypeForm = type  # so that whoever asks for a signature finds one

    def TypeVar(name: str, *, default: Any, **options: Any) -> Any:  # noqa: N802 (the name of what it stands for)
        """A type variable that knows its default."""
        made = typing.TypeVar(name, **options)
        made.__default__ = default
        return made


__all__ = ["Defaults", "TypeForm", "TypeVar"]


class Defaults:
    """For generic classes: `Call[Tenant]` is `Call[Tenant, object]` on every interpreter."""

    __slots__ = ()

    if not TYPE_CHECKING and sys.version_info < (3, 13):

        def __class_getitem__(cls, given: Any) -> Any:
            given = given if isinstance(given, tuple) else (given,)
            rest = cls.__parameters__[len(given) :]
            return super().__class_getitem__((*given, *(one.__default__ for one in rest)))
