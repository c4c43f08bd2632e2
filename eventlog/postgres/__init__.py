"""Runs in a PostgreSQL database, so that several machines carry them on. It needs `refold[postgres]`: psycopg 3.

    refold migrate --runs postgresql://refold@db/app          # once, and after an upgrade
    runs = eventlog.store("postgresql://refold@db/app")

A run's lines are rows, and their bytes are those of the one segment of the run in a directory: there are no further
segments, and no header for a snapshot. So whatever reads a run in a directory reads it here.

A holder has a *lease*: it ends at a time, its holder renews it while it lives, and whoever opens the run later finds it
expired. Each opening raises the *token* in the run's row, and every write names the token of its holder: a writer that
lost its lease can write nothing. What it began before is another matter (`Log.holds`).

What happens in which order, and why, stands at the top of `_log`, `_store`, `_leases` and `_connections`.
"""

from eventlog.postgres._schema import migrate
from eventlog.postgres._store import Postgres, at

__all__ = ["Postgres", "at", "migrate"]
