"""What stands in a URL beside the place itself, who asks and with which key, is in no error of ours."""

from pathlib import Path

import pytest

import runner
from runner._agent import sanitize
from runner.errors import RunError, ToolFailed
from runner.testing import ScriptedModel, tool_calls

pytestmark = [pytest.mark.fault("a key in a URL of an error")]

KEY = "opensesame42"
URLS = {
    "query": (f"https://x.example/mcp?key={KEY}&n=1", "https://x.example/mcp"),
    "user-info": (f"https://ann:{KEY}@x.example:8443/mcp", "https://x.example:8443/mcp"),
    "a token alone": (f"https://{KEY}@x.example/7", "https://x.example/7"),
    "a password with an at sign": (f"https://ann:a@{KEY}@x.example/", "https://x.example/"),
    "a password with a slash": (f"postgres://ann:a/{KEY}@db.example/x", "postgres://db.example/x"),
    "a data source": (f"postgres://ann:{KEY}@db.example/x?sslmode=require", "postgres://db.example/x"),
    "no user": (f"redis://:{KEY}@cache.example:6379/0", "redis://cache.example:6379/0"),
    "a fragment": (f"https://x.example/a#token={KEY}", "https://x.example/a"),
    "another scheme": (f"wss://x.example/s?token={KEY}", "wss://x.example/s"),
    "a source in words": (f"host=db.example user=ann password={KEY} dbname=x", "host=db.example user=ann"),
    "a connection string": (
        f"Server=db.example;User Id=ann;Password={KEY};Encrypt=yes",
        "Server=db.example;User Id=ann",
    ),
    "nothing secret": ("https://x.example/a/b", "https://x.example/a/b"),
}


class Refused(RunError):
    """An error of ours that names a URL."""

    sentence = "the server at {url} refused: {why}"
    url: str
    why: str


@pytest.mark.parametrize(("url", "place"), URLS.values(), ids=URLS)
def test_an_error_names_the_place_alone(url: str, place: str) -> None:
    """As a sentence of ours, and as anybody's that gets into a log."""
    for said in (
        str(Refused(url, "503")),
        sanitize.error(ValueError(f"Client error '401 Unauthorized' for url '{url}', see <{url}>")),
        sanitize.trace(ValueError(url)),
    ):
        assert KEY not in said
        assert place in said


def test_what_is_no_url_stays() -> None:
    """A time, a path, a port."""
    for text in ("at 10:30:00 it said a://", "C://x@y", "see /a/b?c=d#e", "x@y.example", "a: //b"):
        assert sanitize.error(text) == text


def test_a_key_of_a_url_is_in_no_file_of_the_run(runs: Path) -> None:
    """Nor is the model told."""

    @runner.tool(effect="reads")
    def look() -> str:
        """Look."""
        why = f"GET {URLS['query'][0]} was refused"
        raise ToolFailed(why)

    model = ScriptedModel([tool_calls(("look", {})), "over"])
    runner.start_sync(runner.Agent(name="a", model=model, tools=[look]), "look", runs=runs, run="r")
    assert not [path for path in (runs / "r").iterdir() if KEY.encode() in path.read_bytes()]
