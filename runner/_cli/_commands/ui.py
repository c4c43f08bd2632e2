"""`refold ui`: the console, served on this machine alone."""

import functools
import secrets
import socket
from collections.abc import Sequence
from typing import Any

import click

from runner._cli import load_agent, options
from runner._cli._io import out
from runner._cli._io.errors import Refused


@click.command()
@options.runs
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=8484, show_default=True, metavar="N", help="0: any free."
)
@click.option(
    "--token", envvar="REFOLD_UI_TOKEN", metavar="TOKEN", show_default="$REFOLD_UI_TOKEN, else made", help="The token."
)
@click.option("--as", "who", default=options.account, show_default="your account", metavar="WHO", help="Who answers.")
@load_agent.resumable
@click.option("--read-only", is_flag=True, help="Nothing can be changed.")
def ui(
    runs: str, port: int, token: str | None, who: str, sources: Sequence[load_agent.Source], *, read_only: bool
) -> None:
    """Serve a console of all runs on this machine.

    It prints an address that holds a token, which a browser needs once. Runs, their pages while they happen, and what
    they ask: answer, park, stop, send, fork. What is done there is written with the name of --as.
    """
    try:
        import uvicorn

        from runner.ui import app
    except ModuleNotFoundError as error:
        if error.name not in ("uvicorn", "starlette", "jinja2", "markupsafe"):
            raise
        raise Refused(f"the console needs {error.name}, which is not installed", "pip install 'refold[ui]'") from None
    made = token or secrets.token_urlsafe(24)
    agents = [source.agent() for source in sources]
    application = app(options.existing(runs), token=made, who=None if read_only else who, agents=agents)
    try:
        listening = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise Refused(f"port {port} can't be listened on: {error.strerror}", "Give another --port.") from None
    with listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        out.out(f"Open {address}?token={made}" if token is None else f"Open {address}?token=... with your token")
        config = uvicorn.Config(
            application, log_level="warning", access_log=False, lifespan="on", ws="none", timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        leave: Any = functools.partial(server.handle_exit)
        leave.drains = True  # a run that was resumed here takes a signal first
        server.handle_exit = leave  # type: ignore[method-assign]
        server.run(sockets=[listening])
