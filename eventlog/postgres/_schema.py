"""The tables, and how a database comes to have them. Versions only go forward, each in one transaction.

What changes at every save (the end of the log, the status, the lease's end) is in no index, and a page has room for a
second version of its rows: PostgreSQL then changes a row without touching an index. `owner` and `wake` change only when
a holder comes or goes.
"""

from typing import Final

from eventlog.errors import OtherSchema
from eventlog.postgres import _place
from eventlog.postgres._place import Connection

_FIRST: Final = """
create table refold.run (
    run     text primary key,
    token   bigint not null,                             -- rises with each opening; a write must name it
    owner   text,                                        -- HOST:PID:random of who holds the run, or holds it no more
    since   timestamptz not null,
    expires timestamptz not null default '-infinity',    -- the lease's end; in the past while `owner`: it was lost
    lost    boolean not null default false,              -- it was, and no line of the log says so yet
    seq bigint not null, sum text not null, life int not null, at timestamptz not null,
    bytes bigint not null,
    began timestamptz not null, parent text,
    status bytea, agent text, closed boolean not null default false,  -- what the last line's writer said of the run
    wake timestamptz,                                    -- when somebody must open it; null while it is held
    mail int not null default 0                          -- requests in its inbox
) with (fillfactor = 50);
create index run_began on refold.run (began desc, run desc);
create index run_wake on refold.run (agent, wake) where wake is not null;
create index run_held on refold.run (run) where owner is not null;
create table refold.line (run text, seq bigint, data bytea not null, primary key (run, seq));
create table refold.snapshot (run text, seq bigint, data bytea not null, primary key (run, seq));
create table refold.inbox (run text, name text, data bytea not null, primary key (run, name));
create table refold.pruned (run text primary key, ended timestamptz not null, parent text, data bytea not null);
create view refold.family as
  select run, parent from refold.run where parent is not null
  union all select run, parent from refold.pruned where parent is not null;
alter table refold.line alter data set storage external;
"""
_NOTES: Final = "create table refold.note (name text primary key)"  # what somebody outside was told of
MIGRATIONS: Final = (_FIRST, _NOTES)
"""What makes each version of the one before. Never changed once released; another one is added."""
VERSION: Final = len(MIGRATIONS)
_BEFORE: Final = (
    ("to_regnamespace('refold')", "create schema refold"),  # asked first: `if not exists` needs the right to make one
    ("to_regclass('refold.version')", "create table refold.version (version int not null)"),
)
_SET: Final = "with before as (delete from refold.version) insert into refold.version values (%s)"
_LOCK: Final = 0x7265666F6C64


def migrate(url: str) -> tuple[int, int]:
    """Bring a database to the tables of this version, and give the versions before and after.

    Any number of machines may call it at once.

    Raises:
        OtherSchema: A later version of refold has made the tables; nothing was changed.
        NotARunsDirectory: It is no URL of a database.
        DiskFailed: The server can't be reached, or refuses.
    """
    place = _place.read(url)
    with place.errors(), place.connect() as connection, connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
        before = _version(connection)
        if before > VERSION:
            raise OtherSchema(str(place), f"has tables of a later version ({before}; this one knows {VERSION})")
        for script in MIGRATIONS[before:]:
            connection.cursor().execute(script, binary=False)  # several statements
        if before < VERSION:
            connection.execute(_SET, (VERSION,))
        return before, VERSION


def _version(connection: Connection) -> int:
    for absent, make in _BEFORE:
        if connection.execute(f"select {absent} is null").fetchone() == (True,):
            connection.execute(make)
    ((version,),) = connection.execute("select coalesce(max(version), 0) from refold.version").fetchall()
    return int(version)
