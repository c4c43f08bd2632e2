"""`--notify`: somebody outside is told of each open question, at least once, under a key that is the question's.

webhook:URL   POST of JSON, with the headers Idempotency-Key, X-Refold-Timestamp (seconds) and X-Refold-Signature:
              `sha256=` and the hex HMAC-SHA256, by $REFOLD_NOTIFY_SECRET, of the timestamp, a dot, and the body.
command:CMD   the JSON on stdin, the key in $REFOLD_NOTIFY_KEY.

A question is told of once it is saved. An answer of 2xx, or status 0, is noted; until then it is told of again, also by
the next worker. The note is no event, because no decision of a run depends on it, and a run that waits for a person has
no writer: it is kept beside the runs, in every store, while the question is open. Whoever is told knows a repeat by
its key.
"""

import asyncio
import contextlib
import hashlib
import hmac
import http.client
import json
import os
import shlex
import shutil
import subprocess
import time
import urllib.parse
from collections.abc import Sequence
from typing import Any

import click
import msgspec

import eventlog
import replay
import runner
from replay import Question, State
from replay.events import QuestionAsked
from runner._cli._io.errors import Refused, Status
from runner._cli._render import as_json, question_text

AGAIN = 30.0
"""Seconds between two looks at what nobody was told of yet."""
PATIENCE = 10.0
"""Seconds that a server, or a command, may take."""
SILENT = "it did not answer in time"
SECRET = "REFOLD_NOTIFY_SECRET"  # noqa: S105 (a name)

option = click.option(
    "--notify",
    "targets",
    multiple=True,
    metavar="TARGET",
    help="Tell webhook:URL or command:CMD of each open question; may be repeated.",
)


class Notifier:
    """Tells targets of the open questions of a place. `saved` is a watcher that makes it look at once."""

    def __init__(self, targets: Sequence[str], runs: str) -> None:
        self._tell = {target: _target(target) for target in targets}
        self._store = eventlog.store(runs)
        self._late: dict[str, float] = {}  # by key: when a target let the time of this question run out
        self._loop = asyncio.get_running_loop()
        self._asked = asyncio.Event()

    def saved(self, _state: State, events: Sequence[replay.AnyEvent]) -> None:
        """Look soon, if a question was saved."""
        if any(isinstance(event, QuestionAsked) for event in events):
            self._loop.call_soon_threadsafe(self._asked.set)

    async def run(self) -> None:
        """Tell, again and again, until it is cancelled."""
        while self._tell:
            self._asked.clear()
            try:
                await asyncio.to_thread(self.round)
            except Exception as error:  # noqa: BLE001 (whatever it is, the next round may do better)
                _warn("a round of telling failed", error=str(error), error_type=type(error).__name__)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(AGAIN):
                    await self._asked.wait()

    def round(self) -> None:
        """Tell every target of every open question that it was not told of; forget whom of what is open no more.

        A target that does not answer in time is left alone for the rest of the round, so that the others need not wait
        for it question by question. The next round begins with another question.
        """
        noted, found = self._store.notes(), runner.list_runs(self._store)  # in this order: what is noted was asked
        unread = [info.run for info in found if info.problem is not None]
        asked = question_text.of_all(
            found, lambda info: runner.read_state(info.run, self._store), lambda run, _: unread.append(run)
        )
        open_ = {hashlib.sha256(f"{state.uid}/{one.id}".encode()).hexdigest(): (state, one) for state, one in asked}
        self._late = {key: late for key, late in self._late.items() if key in open_}
        silent = set[str]()
        for key in sorted(open_, key=lambda key: self._late.get(key, 0)):
            state, question = open_[key]
            for target, tell in self._tell.items():
                note = f"{key}.{hashlib.sha256(f'{key} {target}'.encode()).hexdigest()[:32]}"
                if note in noted or target in silent:
                    continue
                if (why := tell(key, _body(key, state, question))) is None:
                    self._store.note(note)
                    continue
                _warn("nobody was told", run=state.run, question=question.id, by=target.partition(":")[0], why=why)
                if why == SILENT:
                    silent.add(target)
                    self._late[key] = time.monotonic()
        if not unread:  # else nobody knows what those ask
            self._store.unnote([note for note in noted if note.partition(".")[0] not in open_])


def _warn(said: str, **facts: str) -> None:
    import structlog  # it takes longer than most commands do

    with contextlib.suppress(OSError):  # a closed pipe, or a full disk
        structlog.get_logger().warning(said, **facts)


def _body(key: str, state: State, question: Question) -> bytes:
    facts: dict[str, Any] = {"key": key, "run": state.run, "agent": state.agent, **as_json.question(question)}
    facts |= {"digest": question.digest, "expires": question.expires}
    return json.dumps(msgspec.to_builtins(runner.review.redact(facts))).encode()


def _target(target: str) -> Any:
    """What tells a target of a key and a body, as `_posted` and `_ran` do. Raises `Refused`, status 2."""
    kind, _, where = target.partition(":")
    with contextlib.suppress(ValueError):  # no address, or a quote that does not end
        if kind == "webhook" and _is_address(url := urllib.parse.urlsplit(where)):
            secret = os.environ.get(SECRET, "")
            if not secret:
                raise Refused("a webhook is signed, and there is no secret", f"Set ${SECRET}.", Status.USAGE)
            return lambda key, body: _posted(url, secret.encode(), key, body)
        if kind == "command" and (words := shlex.split(where)) and shutil.which(words[0]) is not None:
            return lambda key, body: _ran(words, key, body)
    why = f"--notify {kind}:... names nothing that can be told"
    raise Refused(why, "Write webhook:URL or command:CMD.", Status.USAGE)


def _is_address(url: urllib.parse.SplitResult) -> bool:
    """Whether a request can be sent there. Raises `ValueError` for a port that is none."""
    written = all("!" <= char <= "~" for char in f"{url.path}?{url.query}")  # whatever else must be written as %XX
    return written and url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0


def _posted(url: urllib.parse.SplitResult, secret: bytes, key: str, body: bytes) -> str | None:
    """Why a server did not take it, None if it did; no redirect is followed, no address said anywhere."""
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    at = str(int(time.time()))
    signed = hmac.new(secret, f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    headers = {"Content-Type": "application/json", "Idempotency-Key": key, "X-Refold-Timestamp": at}
    connection = kind(url.hostname or "", url.port, timeout=PATIENCE)
    try:
        path = urllib.parse.urlunsplit(("", "", url.path or "/", url.query, ""))
        connection.request("POST", path, body, {**headers, "X-Refold-Signature": f"sha256={signed}"})
        status = connection.getresponse().status
        return None if status // 100 == 2 else f"status {status}"  # noqa: PLR2004 (any success)
    except (OSError, http.client.HTTPException) as error:
        return SILENT if isinstance(error, TimeoutError) else type(error).__name__
    finally:
        connection.close()


def _ran(words: Sequence[str], key: str, body: bytes) -> str | None:
    """Why a command did not take it, None if it did."""
    try:
        done = subprocess.run(  # noqa: S603 (the user's own words)
            words, input=body, env={**os.environ, "REFOLD_NOTIFY_KEY": key}, timeout=PATIENCE, check=False,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__ if isinstance(error, OSError) else SILENT
    return None if done.returncode == 0 else f"status {done.returncode}"
