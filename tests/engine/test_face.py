"""The public face: every name is there and says what it is; every error survives a pickle and says what to do."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Iterator

import pytest

import runner
import runner.mcp
import runner.models
import runner.testing
import runner.triage
import runner.web


def _family(error: type[runner.RunError]) -> Iterator[type[runner.RunError]]:
    for kind in error.__subclasses__():
        if kind.__module__.startswith("runner."):
            yield from (kind, *_family(kind)) if kind.sentence or inspect.signature(kind).parameters else _family(kind)


ERRORS = sorted(set(_family(runner.RunError)), key=lambda error: error.__name__)
"""Every error of `runner` and of its adapters and apps, the roots left out, which nothing raises."""


@pytest.mark.parametrize("name", sorted(runner.__all__))
def test_every_public_name_says_what_it_is(name: str) -> None:
    """A class or a function without a sentence of its own is not finished."""
    value = getattr(runner, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert value.__doc__, name
        assert not value.__doc__.startswith(f"{name}("), name


def test_the_face_has_each_name_once_in_order() -> None:
    """So that a reader finds them, and a diff shows what was added."""
    assert len(set(runner.__all__)) == len(runner.__all__)
    assert [name for name in runner.__all__ if name.startswith("_")] == []
    assert len(runner.__all__) <= 90


def made(error: type[runner.RunError]) -> runner.RunError:
    """One of these, with arguments of the kinds it wants."""
    names = [name for name in inspect.signature(error).parameters if name not in ("transient", "billed")]
    given = {"retry_after": 2.5, "tags": ("moon_phase",), "known": ("one", "two"), "seconds": 2.5}
    return error(**{name: given.get(name, f"the {name}") for name in names})


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_survives_a_pickle(error: type[runner.RunError]) -> None:
    """It crosses a process boundary with its data, its sentence and its hint."""
    one = made(error)
    other = pickle.loads(pickle.dumps(one))  # noqa: S301 (our own bytes)
    assert type(other) is error
    assert (str(other), other.hint, vars(other)) == (str(one), one.hint, vars(one))


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_says_what_is_true_and_what_to_do(error: type[runner.RunError]) -> None:
    """A sentence, and a hint that is more than the sentence."""
    one = made(error)
    assert str(one)
    assert one.hint
    assert one.hint.endswith((".", "'"))
    assert str(one) != one.hint
    assert "{" not in str(one) + one.hint


def test_a_models_error_keeps_what_it_was_told() -> None:
    """Its facts are keyword arguments, which pickle does not pass by itself."""
    one = runner.ModelError("busy", transient=False, billed=True, retry_after=3)
    other = pickle.loads(pickle.dumps(one))  # noqa: S301 (our own bytes)
    facts = {"why": "busy", "transient": False, "billed": True, "retry_after": 3, "refused_conversation": False}
    assert vars(other) == vars(one) == facts


def test_a_stop_is_named_by_its_class() -> None:
    """The log holds the same word."""
    stops = [error for error in ERRORS if issubclass(error, runner.Stopped) and error is not runner.Stopped]
    assert len(stops) == 15
    for stop in stops:
        assert stop("r", "because").reason == stop.__name__
        assert stop.__name__ in str(stop("r"))
