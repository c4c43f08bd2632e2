"""A worker process of the torture: `python -m tests.postgres.worker URL WITNESS LEASE SKEW WITHOUT`.

`SKEW` seconds are added to its time of day; `WITHOUT` names a safeguard to take away, or `-`.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import signal
import sys
from datetime import timedelta
from typing import Any
from unittest import mock

import runner
from eventlog.postgres import Postgres, _log
from runner._engine.mailbox import Mailbox
from runner._policy import ladder
from tests.postgres.clerk import Clerk
from tests.support import stacks

_UNFENCED = """
with held as (update refold.run set seq = %(seq)s, sum = %(sum)s, life = %(life)s, at = %(at)s,
  bytes = bytes + %(size)s, status = %(status)b, closed = %(closed)s where run = %(run)s returning run, mail)
insert into refold.line select run, %(seq)s, %(data)b from held
on conflict (run, seq) do update set data = excluded.data returning 0"""


def skew(seconds: float) -> None:
    """Set this process's time of day off, wherever the product reads it."""

    class Skewed(dt.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return dt.datetime.now(tz) + timedelta(seconds=seconds)

    for name, module in list(sys.modules.items()):
        if name.startswith(("eventlog", "runner")) and vars(module).get("datetime") is dt.datetime:
            vars(module)["datetime"] = Skewed


def take_away(safeguard: str) -> None:
    """Work without a safeguard, to see what it is there for."""
    if safeguard == "token":
        mock.patch.object(_log, "_APPEND", _UNFENCED).start()
    if safeguard in ("check", "token"):
        mock.patch.object(_log.Row, "holds", return_value=True).start()
    if safeguard == "wait":
        mock.patch.object(ladder, "_within", lambda tool, _attempt: timedelta(seconds=tool.visible_within)).start()
    if safeguard == "mail":
        mock.patch.object(Mailbox, "take", return_value=[]).start()


async def main(url: str, witness: str, lease: float, skewed: float, without: str) -> None:
    """Work until SIGTERM."""
    skew(skewed)
    take_away(without)
    stacks.tell_when_asked()
    store = Postgres(url, lease=lease)
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    clerk = Clerk(witness, 20.0 if without == "wait" else 5.0)  # long enough to be missed on a slow machine, too
    async with runner.Worker([clerk.agent(), clerk.lead("frozen", "keeps")], runs=store, at_once=60, grace=1.0):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await over.wait()


if __name__ == "__main__":
    logging.disable()
    _url, _witness, _lease, _skew, _without = sys.argv[1:]
    asyncio.run(main(_url, _witness, float(_lease), float(_skew), _without))
