"""The workers of a torture, each with a role of its own at the server, so that one alone can be cut off from it."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Self

import psycopg

from eventlog.postgres import Postgres
from tests.postgres.witness import Witness
from tests.support import ROOT, stacks
from tests.support.postgres import PASSWORD, Cluster

PATIENCE = 400.0
"""Seconds after which a test that waits for something fails."""
LEASE = 2.0


@dataclass
class Member:
    """One worker process. `errors` is what it says on its standard error."""

    role: str
    process: subprocess.Popen[str]
    errors: IO[str]

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def end(self, how: signal.Signals, patience: float = PATIENCE) -> None:
        """End it by a signal. One that goes on fails the test, and says where each of its threads and tasks stands."""
        process = self.process
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(how)
            os.kill(process.pid, signal.SIGCONT)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            said = stacks.asked(process, self.errors)
            process.kill()
            raise AssertionError(f"told to end by {how.name}, it went on for {patience:g} s:\n{said}") from None
        finally:
            self.errors.close()
            assert process.stdout is not None
            process.stdout.close()


def begun(role: str, *arguments: str) -> Member:
    """A worker process, by the interpreter's arguments, which is ready to be told to end."""
    errors = tempfile.TemporaryFile("a+", errors="replace")  # noqa: SIM115 (the member closes it)
    command = [sys.executable, *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", process.wait()
    return Member(role, process, errors)


@dataclass
class Fleet:
    """The workers on one database, each a process of `program`. `without` is the safeguard that they work without."""

    cluster: Cluster
    database: str
    witness: Witness
    lease: float = LEASE
    port: int | None = None
    without: str = "-"
    program: str = "tests.postgres.worker"
    members: list[Member] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def __enter__(self) -> Self:
        """Begin without a worker."""
        return self

    def __exit__(self, *_: object) -> None:
        """End every process that was begun."""
        for member in self.members:
            member.end(signal.SIGKILL)

    def store(self) -> Postgres:
        """The runs, as somebody uses them whom nobody cuts off."""
        return Postgres(self.cluster.url(self.database), lease=self.lease)

    def begin(self, skew: float = 0.0) -> Member:
        """Begin a worker, whose time of day is off by so much."""
        role = f"w{next(self._numbers)}"
        self.cluster.execute(f"create role {self.database}_{role} superuser login password '{PASSWORD}'")
        place = f"127.0.0.1:{self.port or self.cluster.port}/{self.database}"
        url = f"postgresql://{self.database}_{role}:{PASSWORD}@{place}"
        arguments = [url, self.witness.url, f"{self.lease}", f"{skew}", self.without]
        member = begun(f"{self.database}_{role}", "-m", self.program, *arguments)
        self.members.append(member)
        return member

    def end(self, member: Member, how: signal.Signals) -> None:
        """End a worker by a signal."""
        self.members.remove(member)
        member.end(how)

    def cut(self, member: Member) -> None:
        """Keep a worker from the server: what is connected is ended, and nothing is let in."""
        self.cluster.execute(f"alter role {member.role} nologin")
        self.cluster.execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = %s", member.role)

    def mend(self, member: Member) -> None:
        """Let it in again."""
        self.cluster.execute(f"alter role {member.role} login")

    def holds(self, member: Member, run: str) -> bool:
        """Whether a worker holds a run."""
        query = "select owner from refold.run where run = %s and expires > now()"
        found = self.cluster.execute(query, run, database=self.database)
        return bool(found and found[0][0] and f":{member.pid}:" in found[0][0])

    def open_runs(self) -> list[tuple[str, str]]:
        """The runs that are not over, with what their last writers said of them."""
        query = "select run, convert_from(status, 'UTF8') from refold.run where not closed order by run"
        return self.cluster.execute(query, database=self.database)

    def forgotten(self) -> list[str]:
        """The runs that nobody will ever look at: without lease, due, wake or question."""
        query = (
            "select run from refold.run where not closed and owner is null and wake is null and mail = 0 "
            "and convert_from(status, 'UTF8')::jsonb -> 'open_questions' is null"
        )
        return [row[0] for row in self.cluster.execute(query, database=self.database)]


def until(what: str, holds: object, pause: float = 0.05) -> None:
    """Wait until something holds."""
    assert callable(holds)
    deadline = time.monotonic() + PATIENCE
    while True:
        with contextlib.suppress(psycopg.Error):
            if holds():
                return
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(pause)


def is_stopped(pid: int) -> bool:
    """Whether a process was stopped by a signal."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
