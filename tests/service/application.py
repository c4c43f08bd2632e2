"""The web application of the guide, with the agents of these tests, in processes of its own under uvicorn."""

import asyncio
import os
import re
import socket
from typing import Any

import uvicorn

import runner
import runner.testing
from tests.docs import documents
from tests.service import scenes

PROGRAM = documents.section("runner/README.md", "In a web application").program


def glue() -> list[str]:
    """The lines of the program that a service adds to its agent: all but imports and the agent itself."""
    return [line for line in PROGRAM.splitlines() if line and not line.startswith(("import ", "from ", "agent = "))]


def talker(_effects: str) -> runner.Agent:
    """An agent whose model takes a second for each of its three replies."""

    class Slow(runner.testing.ScriptedModel):
        async def ask(self, request: runner.Request) -> runner.Reply:
            await asyncio.sleep(1)
            return await super().ask(request)

    @runner.tool(effect="reads")
    def act() -> str:
        return "seen"

    return runner.Agent(name="talker", model=Slow([scenes.CALL, scenes.CALL, "over"]), tools=[act])


def serve(folder: str, port: int, which: str, grace: float = 60.0) -> None:
    """Serve until a signal ends it."""
    os.chdir(folder)
    agent = {"shop": scenes.shop, "talker": talker}[which](f"{folder}/effects")
    program, one = re.subn(r"^agent = .*$", "", PROGRAM, flags=re.MULTILINE)
    program, other = re.subn(r"grace=\d+", f"grace={grace}", program)
    assert (one, other) == (1, 1)
    names: dict[str, Any] = {"agent": agent}
    exec(compile(program, "application", "exec"), names)  # noqa: S102 (our own document)
    uvicorn.run(names["app"], host="127.0.0.1", port=port, log_level="error")


def free_port() -> int:
    """A port where nobody listens now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Whether a server is up."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
