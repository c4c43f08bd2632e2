"""A real PostgreSQL server, for tests and benchmarks.

It runs as the account `postgres` where the tests run as root, and listens on loopback alone. Its role has a password,
so that a test can look for it in what is printed. A database is made with our tables, or without. A server may be the
standby of another.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import psycopg

from eventlog.postgres import migrate

PASSWORD: Final = "not-for-any-log"  # noqa: S105 (of a server that lives as long as the tests)
PATIENCE: Final = 60.0
_TRIES: Final = 5


def binaries() -> Path:
    """Where the server's programs are. Raises `NotInstalled`."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    named = shutil.which("initdb")
    if not found and named is None:
        raise NotInstalled("there is no PostgreSQL server here: apt-get install postgresql")
    return found[-1].parent if found else Path(str(named)).parent


class NotInstalled(Exception):
    """There is no server on this machine."""


class Cluster:
    """One server, and its databases."""

    def __init__(self, *, power_safe: bool = False, standby_of: Cluster | None = None) -> None:
        self._bin = binaries()
        self._made = 0
        self.port = 0
        self._server: subprocess.Popen[bytes] | None = None
        self.account: dict[str, Any] = {"cwd": "/"}
        if os.getuid() == 0:
            self.account |= {"user": "postgres", "group": "postgres", "extra_groups": []}
        self.folder = Path(tempfile.mkdtemp(prefix="refold-postgres-"))
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        self._copy(standby_of) if standby_of is not None else self._make()
        sync = "on" if power_safe else "off"
        self._settings = {
            "fsync": sync,
            "full_page_writes": sync,
            "listen_addresses": "127.0.0.1",
            "max_connections": "200",
            "unix_socket_directories": "",
            "shared_buffers": "64MB",
            "autovacuum_naptime": "10",
            "authentication_timeout": "20",  # a client that says nothing holds up even a server that is to crash
        }
        self.start()

    def _make(self) -> None:
        secret = self.folder / "secret"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)  # in a folder that only its owner may enter
        options = ["--no-sync", "--auth=scram-sha-256", f"--pwfile={secret}", "--username=refold", "--encoding=UTF8"]
        self._command("initdb", f"--pgdata={self.folder}/data", "--no-locale", *options)

    def _copy(self, primary: Cluster) -> None:
        """Be what `primary` is, and follow it under the name `standby`."""
        source = f"{primary.url()}?application_name=standby"
        options = ["--no-sync", "--checkpoint=fast", "--wal-method=stream", "--write-recovery-conf"]
        self._command("pg_basebackup", f"--pgdata={self.folder}/data", f"--dbname={source}", *options)

    def url(self, database: str = "postgres", *, port: int | None = None) -> str:
        """The URL of a database; through another port, as a pooler's."""
        return f"postgresql://refold:{PASSWORD}@127.0.0.1:{port or self.port}/{database}"

    def start(self) -> None:
        """Start the server, on the port that it had before, and wait until it answers."""
        for _ in range(_TRIES):
            port = self.port or free_port()
            settings = [f"--{name}={value}" for name, value in {**self._settings, "port": str(port)}.items()]
            with (self.folder / "log").open("ab") as log:
                self._server = subprocess.Popen(
                    [self._bin / "postgres", "-D", self.folder / "data", *settings],
                    stdout=log,
                    stderr=log,
                    **self.account,
                )
            if self.answers(port, self._server):
                self.port = port
                return
        raise AssertionError((self.folder / "log").read_text())

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT ends its connections first, SIGQUIT is a crash (`immediate`)."""
        if self._server is not None:
            self._server.send_signal(how)
            try:
                self._server.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"told to end by {how.name}, the server went on:\n{self._state()}") from None
            self._server = None

    def _state(self) -> str:
        """What the server's processes do, and what it said last."""
        assert self._server is not None
        pid = str(self._server.pid)
        processes = subprocess.run(
            ["ps", "-o", "pid,ppid,stat,etime,wchan:30,pending,blocked,args", "--pid", pid, "--ppid", pid],
            capture_output=True,
            text=True,
            check=False,
        )
        return processes.stdout + (self.folder / "log").read_text(errors="replace")[-8000:]

    def close(self) -> None:
        """Stop the server and remove its files."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder)

    def execute(self, statement: str, *values: object, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run one statement as a superuser, and give its rows."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description is not None else []

    def database(self, *, tables: bool = True) -> str:
        """Make a database, and give its name."""
        if tables and not self.execute("select from pg_database where datname = 'migrated'"):
            self.execute("create database migrated")
            migrate(self.url("migrated"))
        self._made += 1
        name = f"test_{self._made}"
        self.execute(f"create database {name} template {'migrated' if tables else 'template0'}")
        return name

    def drop(self, database: str) -> None:
        """Remove a database, whoever is connected."""
        self.execute(f"drop database if exists {database} with (force)")

    def answers(self, port: int, process: subprocess.Popen[bytes]) -> bool:
        """Wait until a process serves our databases at a port; False if it ends before."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.url(port=port), connect_timeout=5):
                return True
            if process.poll() is not None:  # another program has the port by now
                return False
            time.sleep(0.05)
        return False

    def _command(self, name: str, *arguments: str) -> None:
        found = subprocess.run(
            [self._bin / name, *arguments], capture_output=True, text=True, check=False, **self.account
        )
        assert found.returncode == 0, found.stderr


def free_port() -> int:
    """A port that nobody uses at this moment."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
