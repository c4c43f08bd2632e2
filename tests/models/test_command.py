"""`refold run --model`: another model than the agent's, its key from the environment alone."""

import os
import subprocess
import sys
from pathlib import Path

import runner
import runner.testing
from tests.models.dialects import DIALECTS, KEY, CannedReply
from tests.models.server import Answer, Server
from tests.support import ROOT

AGENT = (
    "import runner, runner.testing\n"
    "agent = runner.Agent(name='agent', model=runner.testing.ScriptedModel(['scripted']))\n"
)
LAST = CannedReply(text="Done.")


def refold(where: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a directory of its own."""
    (where / "mine.py").write_text(AGENT, encoding="utf-8")
    command = [sys.executable, "-m", "runner._cli", *words, "--agent", "mine:agent", "--runs", "runs"]
    path = {"PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1"}
    return subprocess.run(
        command, cwd=where, env=os.environ | path | environment, capture_output=True, text=True, check=False
    )


def test_a_run_is_started_and_resumed_on_a_named_model(tmp_path: Path) -> None:
    """What it stopped for is said with the command that goes on, and no word of the key is printed or logged."""
    model = "chat:chat-model"
    dialect = DIALECTS["chat"]
    refusal = Answer(b'{"error":{"message":"bad key ' + KEY.encode() + b'"}}', 401)
    with Server(refusal, Answer(dialect.whole(LAST))) as server:
        environment = {"OPENAI_BASE_URL": server.url + dialect.root}
        began = refold(tmp_path, "run", "Pay.", "--model", model, **environment)
        assert began.returncode == 1
        assert f"--model {model}" in began.stderr
        (listed,) = runner.list_runs(tmp_path / "runs")
        ended = refold(tmp_path, "resume", listed.run, "--model", model, **environment)
        assert (ended.returncode, ended.stdout.strip()) == (0, "Done."), ended.stderr
        assert server.seen[0].body == server.seen[1].body
        assert server.seen[1].headers["authorization"] == f"Bearer {KEY}"
    log = b"".join(path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file())
    assert KEY not in began.stdout + began.stderr + ended.stdout + ended.stderr + log.decode()


def test_a_model_that_can_not_be_had_is_a_sentence(tmp_path: Path) -> None:
    """Wrong usage and a missing package have different exit statuses."""
    wrong = refold(tmp_path, "run", "Pay.", "--model", "gpt")
    assert (wrong.returncode, "names no model: write VENDOR:NAME" in wrong.stderr) == (2, True)
    (tmp_path / "anthropic.py").write_text("raise ModuleNotFoundError(name='anthropic')\n", encoding="utf-8")
    missing = refold(
        tmp_path,
        "run",
        "Pay.",
        "--model",
        "anthropic:m",
        PYTHONPATH=str(tmp_path) + os.pathsep + str(ROOT),
    )
    assert missing.returncode == 1
    assert "the package anthropic is not installed" in missing.stderr
    assert "pip install 'refold[anthropic]'" in missing.stderr
    assert "Traceback" not in wrong.stderr + missing.stderr
