"""A process that carries an order on in a database and dies after its mail: `python -m tests.frameworks.dying`."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import runner
from eventlog.postgres import Postgres
from tests.frameworks.kills import Files
from tests.frameworks.orders import ORDERS


class Dies(Files):
    """Services whose post kills the process that it worked for."""

    async def did(self, tool: str, call: runner.Call) -> str:
        """Act, and die after a mail."""
        said = await super().did(tool, call)
        if tool == "mail":
            os.kill(os.getpid(), signal.SIGKILL)
        return said


if __name__ == "__main__":
    kind, url, folder = sys.argv[1:]
    asyncio.run(runner.run(ORDERS[kind](Dies(Path(folder))), "Order.", run="r", runs=Postgres(url, lease=600.0)))
