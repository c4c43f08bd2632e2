"""Images that tools return: they reach the models that take them, and a server that refuses them gets text."""

import json
from pathlib import Path

import pytest

import runner
import runner.testing
from tests.models import cases
from tests.models.dialects import DIALECTS, CannedReply
from tests.models.server import Answer, Server
from tests.support import stage

DATA = "iVBORw0KGgo="
CALLS = CannedReply("Looking.", "", (("c1", "look", "{}"),), "tool_calls")
LAST = CannedReply(text="Seen.")
REFUSES = Answer(b'{"error":{"type":"invalid_request_error","message":"this model takes no image"}}', 400)
TEXT = '["a picture", "[image 1: image/png, 12 characters of base64]"]'


@runner.tool(effect="reads")
def look() -> list[object]:
    """Look."""
    return ["a picture", runner.Image("image/png", DATA)]


def seen(name: str, root: Path, *replies: CannedReply | Answer) -> list[str]:
    """Run an agent that looks once; the bodies that its model got."""
    dialect = DIALECTS[name]
    with Server(*cases.answers(dialect, list(replies), streamed=False)) as server:
        model = cases.model(dialect, server.url, streamed=False)
        agent = runner.Agent(name="eyes", model=model, tools=[look])
        outcome = runner.start_sync(agent, "Look.", runs=root, run="r", clock=stage.Ticking())
        assert stage.finished(outcome) == "Seen."
        return [one.body.decode() for one in server.seen]


@pytest.mark.fault("a picture is lost on its way to a model that sees")
@pytest.mark.parametrize("name", DIALECTS)
def test_an_image_reaches_every_kind_of_model_beside_the_text_that_names_it(name: str, tmp_path: Path) -> None:
    """The log keeps it with its result, so that every later life and request has it."""
    _, body = seen(name, tmp_path, CALLS, LAST)
    json.loads(body)
    assert body.count(DATA) == 1
    assert json.dumps(TEXT)[1:-1] in body
    (result,) = stage.results(tmp_path).values()
    assert (result.text, result.images, result.lossy) == (TEXT, (runner.Image("image/png", DATA),), False)


@pytest.mark.fault("a picture as bytes makes a save fail")
def test_bytes_are_written_as_base64_and_a_flood_of_images_is_cut(tmp_path: Path) -> None:
    """A tool reads a file and returns what it read; a server may return more than any model takes."""

    @runner.tool(effect="reads")
    def look() -> list[runner.Image]:
        return [runner.Image("image/png", b"\x89PNG")] * 30  # type: ignore[arg-type] # what a user does

    script = [runner.testing.tool_calls(("look", {})), "over"]
    assert stage.finished(stage.start(script, look, runs=tmp_path)) == "over"
    (result,) = stage.results(tmp_path).values()
    assert (len(result.images or ()), result.lossy) == (20, True)
    assert set(result.images or ()) == {runner.Image("image/png", "iVBORw==")}


@pytest.mark.fault("a model that takes no images stops the run")
@pytest.mark.parametrize("name", DIALECTS)
def test_a_server_that_refuses_images_gets_the_text_alone(name: str, tmp_path: Path) -> None:
    """As it gets any conversation rebuilt that it refused."""
    _, refused, rebuilt = seen(name, tmp_path, CALLS, REFUSES, LAST)
    assert (DATA in refused, DATA in rebuilt) == (True, False)
    assert json.dumps(TEXT)[1:-1] in rebuilt


@pytest.mark.parametrize(
    "image",
    [
        runner.Image("image/tiff", DATA),
        runner.Image("image/png", "x" * (6 << 20)),
        runner.Image("image/png", "no base64!"),
        runner.Image("image/png", "\ud800"),
    ],
    ids=["kind", "size", "text", "half a character"],
)
def test_what_no_model_sees_is_named_and_marked(image: runner.Image, tmp_path: Path) -> None:
    """The text says what is not kept; the run goes on."""

    @runner.tool(effect="reads")
    def look() -> runner.Image:
        return image

    script = [runner.testing.tool_calls(("look", {})), "over"]
    assert stage.finished(stage.start(script, look, runs=tmp_path)) == "over"
    (result,) = stage.results(tmp_path).values()
    assert (result.text.endswith('not kept]"'), result.lossy, bool(result.images)) == (True, True, False)
