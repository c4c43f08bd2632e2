"""The SDKs are extras: imported when used, and missed with a sentence."""

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

import runner
from runner import models
from runner.models import _wire
from runner.models.anthropic import Anthropic
from runner.models.openai import Chat, Responses
from tests.support import ROOT

HEAVY = ("anthropic", "openai", "httpx", "httpx2", "pydantic", "genai_prices")


def loaded(statement: str) -> list[str]:
    """Which of the heavy packages a new process has after a statement."""
    program = f"{statement}\nimport json, sys\nprint(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    names: list[str] = json.loads(done.stdout)
    return names


def test_importing_runner_and_its_models_imports_no_sdk() -> None:
    """Whoever uses one vendor does not wait for the other, and whoever uses none waits for neither."""
    assert loaded("import runner, runner.models, runner.models.anthropic, runner.models.openai") == []
    used = loaded("from runner.models.anthropic import Anthropic; Anthropic('m')")
    assert "anthropic" in used
    assert "openai" not in used


@pytest.mark.parametrize(("make", "extra"), [(Anthropic, "anthropic"), (Responses, "openai"), (Chat, "openai")])
def test_without_its_extra_a_model_says_what_to_install(
    make: type[Anthropic | Responses | Chat], extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sentence instead of a traceback from inside an import."""
    monkeypatch.setitem(sys.modules, extra, None)
    with pytest.raises(models.NotInstalled) as missing:
        make("m")
    assert str(missing.value) == f"the package {extra} is not installed"
    assert missing.value.hint == f"Install it: pip install 'refold[{extra}]'"
    again = pickle.loads(pickle.dumps(missing.value))  # noqa: S301 (our own bytes)
    assert (str(again), again.hint) == (str(missing.value), missing.value.hint)


def test_an_sdk_that_is_broken_is_not_called_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installing the extra would not help."""
    (tmp_path / "broken_sdk.py").write_text("import no_such_package_at_all\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="no_such_package_at_all"):
        _wire.Wire("broken_sdk", "X", "/", {}, None, None)


def test_a_model_is_named_by_its_vendor() -> None:
    """As the command line has it."""
    made = [models.named("anthropic:a"), models.named("openai:b:c"), models.named("chat:d", max_tokens=9)]
    assert [(type(one), one.name) for one in made] == [(Anthropic, "a"), (Responses, "b:c"), (Chat, "d")]
    for wrong in ("gpt", "other:x", "openai:", ":x", "", cast("str", None)):
        with pytest.raises(runner.BadAgent, match="names no model: write VENDOR:NAME"):
            models.named(wrong)


@pytest.mark.parametrize("make", [Anthropic, Responses, Chat])
def test_a_misspelt_option_is_told_with_the_model_it_was_given_to(make: Any) -> None:
    """And with those that there are."""
    with pytest.raises(
        runner.BadAgent, match=rf"{make.__name__} has no option max_token: there are max_tokens, client,"
    ):
        make("m", max_token=5)
    with pytest.raises(runner.BadAgent, match="Anthropic has no option schema"):
        models.named("anthropic:m", schema=True)


def test_every_public_name_says_what_it_promises() -> None:
    """Where an editor shows it."""
    for name in models.__all__:
        assert getattr(models, name).__doc__, name
    for kind in (Anthropic, Responses, Chat):
        assert kind.__doc__
