"""What a tool declares as secret is masked before anything is logged, however it is written."""

import base64
import json
from pathlib import Path

import pytest

import eventlog
import runner
from runner._agent import sanitize
from runner.testing import ScriptedModel, tool_calls

HELD = ("open sesame 42", "open-sesame-42", "424242")
SECRET = HELD[0]
SHAPES: dict[str, object] = {
    "a field": {"api_key": SECRET},
    "a field deep inside": {"a": [{"b": {"api_key": SECRET}}]},
    "another case": {"API_KEY": SECRET},
    "another spelling": {"Api-Key": SECRET, "apiKey": SECRET},
    "JSON as text": json.dumps({"api_key": SECRET, "x": 1}),
    "JSON as text in a field": {"body": json.dumps({"api_key": SECRET})},
    "a line of text": f'the answer was api_key="{SECRET}"',
    "an assignment": "export API_KEY=open-sesame-42",
    "a pair": [["api_key", SECRET], ["x", "y"]],
    "a name and a value": [{"name": "api_key", "value": SECRET}],
    "bytes": json.dumps({"api_key": SECRET}).encode(),
    "a value that is no text": {"api_key": [SECRET, {"x": SECRET}]},
    "XML": f"<api_key>{SECRET}</api_key>",
    "a number": {"api_key": 424242},
}


def _hidden(text: str) -> bool:
    """Whether nothing of a secret is left, in base64 neither."""
    decoded = base64.b64decode(text, validate=True).decode() if text.isalnum() or text.endswith("=") else ""
    return not any(secret in each for each in (text, decoded) for secret in HELD)


@pytest.mark.fault("a declared secret in the log")
@pytest.mark.parametrize("shape", SHAPES)
def test_a_secret_field_is_masked_in_every_shape_of_a_result(shape: str) -> None:
    """The name says which values are secret; how a service writes it is its own affair."""
    stored = sanitize.result(SHAPES[shape], ("api_key",)).text
    assert _hidden(stored.strip('"')), stored


@pytest.mark.fault("a declared secret in the log")
@pytest.mark.parametrize("shape", SHAPES)
def test_a_secret_field_is_masked_in_every_error(shape: str) -> None:
    """Libraries quote what they were given."""
    value = SHAPES[shape]
    said = sanitize.error(ValueError(value if not isinstance(value, bytes) else value.decode()), ("api_key",))
    assert not any(secret in said for secret in HELD), said


def test_what_has_another_name_stays() -> None:
    """A tool whose results are all masks is of no use."""
    value = {"key": "k", "api": "a", "monkey_api_keys": 3, "note": "the api_key is gone"}
    assert json.loads(sanitize.result(value, ("api_key",)).text) == value


def test_a_secret_of_a_tool_that_fails_is_in_no_file_of_its_run(runs: Path) -> None:
    """Neither in the sentence nor in the traceback."""

    @runner.tool(effect="reads", secret=("api_key",))
    def look() -> str:
        """Look."""
        raise ValueError({"api_key": SECRET})

    agent = runner.Agent(name="a", model=ScriptedModel([tool_calls(("look", {})), "over"]), tools=[look])
    runner.start_sync(agent, "look", runs=runs, run="r")
    assert not [path for path in (runs / "r").iterdir() if SECRET.encode() in path.read_bytes()]


@pytest.mark.fault("a declared secret in the log")
def test_the_value_of_a_secret_argument_is_masked_wherever_its_call_says_it(runs: Path) -> None:
    """Without its name beside it, in a result, an error or a traceback; and by its name in an export."""

    @runner.tool(effect="reads", secret=("pin_of_ada",))
    def look(how: str, pin_of_ada: str) -> str:
        """Look."""
        if how == "raise":
            raise ValueError("it was " + pin_of_ada)
        return "it is " + pin_of_ada

    turns = [tool_calls(("look", {"how": how, "pin_of_ada": SECRET})) for how in ("raise", "return")]
    agent = runner.Agent(name="a", model=ScriptedModel([*turns, "over"]), tools=[look])
    runner.start_sync(agent, "look", runs=runs, run="r")
    said = [raw for line in eventlog.store(runs).read("r").lines for raw in line.events]
    told = [bytes(raw) for raw in said if b"result_recorded" in bytes(raw) or b"attempt_ended" in bytes(raw)]
    assert told
    assert not [raw for raw in told if SECRET.encode() in raw]
    exported, _ = runner.review.export("r", agent, runs=runs)
    assert SECRET.encode() not in exported
