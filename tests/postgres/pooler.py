"""A pgbouncer before the server, in transaction mode: a client has another server process for each statement."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.postgres.fleet import PATIENCE
from tests.service.application import free_port
from tests.support.postgres import PASSWORD, Cluster


@contextlib.contextmanager
def pooler(cluster: Cluster, size: int = 20) -> Iterator[int]:
    """The port of a pooler of so many connections, which logs everybody in as the one role that it knows."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        message = "there is no pgbouncer here: apt-get install pgbouncer"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    port, folder = free_port(), Path(tempfile.mkdtemp(prefix="refold-pgbouncer-"))
    server = f"host=127.0.0.1 port={cluster.port} user=refold password={PASSWORD}"
    lines = ["[databases]", f"* = {server}", "[pgbouncer]", "listen_addr = 127.0.0.1", f"listen_port = {port}"]
    lines += ["unix_socket_dir =", "auth_type = any", "pool_mode = transaction", f"default_pool_size = {size}"]
    lines += [
        "max_client_conn = 500",
        "server_login_retry = 1",
        "ignore_startup_parameters = extra_float_digits,options",
    ]
    config = folder / "pgbouncer.ini"
    config.write_text("\n".join(lines) + "\n")
    as_: dict[str, str] = {}
    if os.getuid() == 0:
        as_ = {"user": "postgres", "group": "postgres"}
        shutil.chown(folder, "postgres", "postgres")
        shutil.chown(config, "postgres", "postgres")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, config], stdout=log, stderr=log, cwd="/", **as_)  # type: ignore[call-overload]
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(psycopg.OperationalError), psycopg.connect(cluster.url(port=port)):
                break
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)
