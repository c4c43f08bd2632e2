"""Every Python block of every document runs as it stands, and prints what the document says."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import runner
from tests.docs import documents
from tests.docs.examples import beside, executed
from tests.models import cases
from tests.models.dialects import DIALECTS, KEY, CannedReply
from tests.models.server import Answer, Server

PROGRAMS = documents.everywhere("python")
Outside = Callable[[], contextlib.AbstractContextManager[dict[str, str]]]


@contextlib.contextmanager
def _anthropic() -> Iterator[dict[str, str]]:
    """A server that asks for the weather once; the program asks for its cache, and its price is known."""
    dialect = DIALECTS["anthropic"]
    call = CannedReply(calls=(("c1", "weather", '{"city": "Oslo"}'),), stop="tool_calls")
    with Server(Answer(dialect.whole(call)), Answer(dialect.whole(CannedReply(text="Sunny.")))) as server:
        yield {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": KEY}
        for seen in server.seen:
            cases.lawful(dialect, seen)
            assert seen.json["cache_control"] == {"type": "ephemeral"}
        assert "sunny in Oslo" in json.dumps(server.seen[1].json)


@contextlib.contextmanager
def _openai() -> Iterator[dict[str, str]]:
    """A server that speaks both protocols."""
    answers = [
        Answer(DIALECTS[name].whole(CannedReply(text=text)))
        for name, text in (("responses", "Two."), ("chat", "Three."))
    ]
    with Server(*answers) as server:
        url = f"{server.url}/v1"
        yield {"OPENAI_BASE_URL": url, "LOCAL": url, "OPENAI_API_KEY": KEY}
        assert [seen.path for seen in server.seen] == ["/v1/responses", "/v1/chat/completions"]


@contextlib.contextmanager
def _nothing() -> Iterator[dict[str, str]]:
    """No service; an address where nothing listens, for a program that only declares what it will ask."""
    yield {"API": "http://127.0.0.1:9"}


OUTSIDE: dict[str, Outside] = {
    "Anthropic": _anthropic,
    "OpenAI and compatible servers": _openai,
}
"""What a program finds outside of itself, by the title of its section; most need nothing."""


def test_every_title_that_needs_something_outside_is_one_of_a_program() -> None:
    """A section that was renamed would run without it."""
    assert set(OUTSIDE) <= {section.title for section in PROGRAMS}


@pytest.mark.parametrize("section", PROGRAMS, ids=lambda section: section.name)
def test_every_example_runs_as_it_stands(
    section: documents.Section, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """A reader copies it and it works; what it prints is what the document shows."""
    if section.title == "MCP":
        beside(request.getfixturevalue("shop"), tmp_path)
    with OUTSIDE.get(section.title, _nothing)() as environment:
        for name, value in {"NO_PROXY": "127.0.0.1", **environment}.items():
            monkeypatch.setenv(name, value)
        done = executed(section, tmp_path, monkeypatch)
    if section.prints is not None:
        assert done.printed == section.prints
    for found in runner.list_runs(tmp_path / "runs") if (tmp_path / "runs").is_dir() else []:
        assert found.problem is None
