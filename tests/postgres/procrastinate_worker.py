"""A worker process of the torture that is procrastinate's own; its arguments are those of `tests.postgres.worker`.

A worker of procrastinate's ends when its connections are ended, so here, as under a supervisor, it is begun again.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys

import procrastinate

import runner
from eventlog.postgres import Postgres
from runner.procrastinate import Queue
from tests.postgres.clerk import Clerk
from tests.postgres.worker import skew
from tests.support import stacks

AGAIN = 0.2
LOST = 20.0
"""Seconds after which a cancellation is made again: Python 3.11's `wait_for` loses one that comes with its result."""


async def main(url: str, witness: str, lease: float, skewed: float) -> None:
    """Work until SIGTERM."""
    skew(skewed)
    stacks.tell_when_asked()
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    store, agent = Postgres(url, lease=lease), Clerk(witness).agent()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not over.is_set():
        working = asyncio.create_task(_work(url, store, agent))
        leaving = asyncio.create_task(over.wait())
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        while not working.done():
            working.cancel()
            await asyncio.wait({working}, timeout=LOST)
        await asyncio.sleep(AGAIN)


async def _work(url: str, store: Postgres, agent: runner.Agent) -> None:
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url, max_size=4, timeout=5))
    Queue(app, [agent], runs=store)
    try:
        await app.open_async()
        await app.run_worker_async(
            queues=["refold:clerk"],
            concurrency=60,
            delete_jobs="always",
            install_signal_handlers=False,
            shutdown_graceful_timeout=3,
            fetch_job_polling_interval=0.5,
        )
    finally:  # also when it is cancelled while it opens: its pool's tasks end by nothing else
        await app.close_async()


if __name__ == "__main__":
    logging.disable()
    _url, _witness, _lease, _skew, _without = sys.argv[1:]
    asyncio.run(main(_url, _witness, float(_lease), float(_skew)))
