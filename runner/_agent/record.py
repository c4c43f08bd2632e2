"""A record: a frozen dataclass for type checkers, `dataclasses`, `inspect` and `match`, of which no code is generated.

`dataclasses` writes a class's methods as source and compiles it, which takes an import longer than all else a class
does. A record's methods are those here. What `dataclasses` and `inspect` ask a class for is made when they ask.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

One = TypeVar("One")


class _Field:
    """How a field is declared. `default` is empty, or holds the one."""

    def __init__(
        self, *default: Any, make: Callable[[], Any] | None = None, shown: bool = True, equal: bool = True
    ) -> None:
        self.default, self.make, self.shown, self.equal = default, make, shown, equal


class _Shape:
    """What records of one class hold, those of the class that it derives from first."""

    def __init__(self, kind: type, *, kw_only: bool) -> None:
        above: _Shape | None = getattr(kind, "__record__", None)
        types, fields = (above.types, above.fields) if above is not None else ({}, {})
        self.name = kind.__name__
        self.types: dict[str, Any] = {**types, **_annotations(kind)}
        self.fields: dict[str, _Field] = {**fields, **_declared(kind)}
        self.by_place = () if kw_only else tuple(self.fields)
        self.defaults = {name: field.default[0] for name, field in self.fields.items() if field.default}
        self.made = {name: field.make for name, field in self.fields.items() if field.make is not None}
        self.shown = [name for name, field in self.fields.items() if field.shown]
        self.compared = [name for name, field in self.fields.items() if field.equal]
        self.twin: Any = None

    def dataclass(self) -> Any:
        """A dataclass with these fields."""
        if self.twin is None:
            import dataclasses  # noqa: PLC0415 (only for whoever asks for it)

            def field(one: _Field) -> Any:
                given: Any = {"default": one.default[0]} if one.default else {}
                given |= {"default_factory": one.make} if one.make is not None else {}
                return dataclasses.field(**given, repr=one.shown, compare=one.equal, kw_only=not self.by_place)

            fields = [(name, self.types[name], field(one)) for name, one in self.fields.items()]
            self.twin = dataclasses.make_dataclass(self.name, fields, frozen=True)
        return self.twin


class _Asked:
    """What a dataclass of these fields has by this name. An object has no signature, and `inspect` asks it for one."""

    def __set_name__(self, _: type, name: str) -> None:
        self.name = name

    def __get__(self, one: object, kind: Any) -> Any:
        twin = kind.__record__.dataclass()
        if self.name != "__signature__":
            return getattr(twin, self.name)
        if one is not None or kind.__init__ is not _Record.__init__:
            raise AttributeError(self.name)
        return inspect.signature(twin)


class _Record:
    """What a record can do; `record` gives it to a class that has nothing of its own by the name."""

    __dataclass_fields__ = _Asked()
    __dataclass_params__ = _Asked()
    __signature__ = _Asked()

    def __init__(self, *args: Any, **given: Any) -> None:
        shape: _Shape = self.__record__  # type: ignore[attr-defined] # of its class
        values = vars(self)
        values.update(shape.defaults)
        values.update(zip(shape.by_place, args, strict=False))
        values.update(given)
        for name, make in shape.made.items():
            if name not in values:
                values[name] = make()
        doubled = not given.keys().isdisjoint(shape.by_place[: len(args)])
        if doubled or len(args) > len(shape.by_place) or values.keys() != shape.fields.keys():
            shape.dataclass()(*args, **given)  # raises the TypeError that says what is wrong
        if (checked := getattr(self, "__post_init__", None)) is not None:
            checked()

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__record__.shown)  # type: ignore[attr-defined] # as above
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return _compared(self) == _compared(other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(_compared(self))

    def __setattr__(self, name: str, value: object) -> None:
        _refuse(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        _refuse(f"cannot delete field {name!r}")

    def __replace__(self, /, **changes: Any) -> Any:
        return replaced(self, **changes)


_GIVEN = [name for name in vars(_Record) if name not in ("__module__", "__doc__", "__dict__", "__weakref__")]


def _compared(one: Any) -> tuple[object, ...]:
    return tuple([getattr(one, name) for name in one.__record__.compared])


def _refuse(why: str) -> NoReturn:
    import dataclasses  # noqa: PLC0415 (as above)

    raise dataclasses.FrozenInstanceError(why)


def _annotations(kind: type) -> Mapping[str, Any]:
    if sys.version_info >= (3, 14):
        return inspect.get_annotations(kind, format=3)  # FORWARDREF
    own: Mapping[str, Any] = vars(kind).get("__annotations__", {})  # far less work than inspect.get_annotations
    return own


def _declared(kind: type) -> dict[str, _Field]:
    """The fields that a class itself annotates. What stands for them in the class is their default, if any."""
    found: dict[str, _Field] = {}
    for name in _annotations(kind):
        given = [vars(kind)[name]] if name in vars(kind) else []
        found[name] = given[0] if given and isinstance(given[0], _Field) else _Field(*given)
        if found[name].default:
            setattr(kind, name, found[name].default[0])
        elif given:
            delattr(kind, name)
    return found


def replaced(one: One, **changes: Any) -> One:
    """A copy of a record with some fields changed."""
    shape: _Shape = one.__record__  # type: ignore[attr-defined] # it is a record
    return type(one)(**{name: getattr(one, name) for name in shape.fields} | changes)


if TYPE_CHECKING:
    from dataclasses import dataclass as record
    from dataclasses import field
else:

    def field(**said: Any) -> _Field:
        """As `dataclasses.field`."""
        default = [said["default"]] if "default" in said else []
        shown, equal = said.get("repr", True), said.get("compare", True)
        return _Field(*default, make=said.get("default_factory"), shown=shown, equal=equal)

    def record(*, frozen: Literal[True], kw_only: bool = False) -> Callable[[type], type]:  # noqa: ARG001 (as it reads)
        """As `dataclasses.dataclass`."""

        def made(kind: Any) -> Any:
            kind.__record__ = _Shape(kind, kw_only=kw_only)
            kind.__match_args__ = kind.__record__.by_place
            for name in _GIVEN:
                if name not in vars(kind):
                    setattr(kind, name, vars(_Record)[name])
            return kind

        return made


__all__ = ["field", "record", "replaced"]
