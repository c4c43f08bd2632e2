"""The event log: what happened, in order, durably. It knows no event type, no agent and no model.

    with eventlog.create("runs", "triage-1", at=now, events=[b'{"type":"started"}']) as log:
        log.append(now, [b'{"type":"noted"}'])          # durable when it returns
    for line in eventlog.read("runs", "triage-1").lines: ...

Either reading or appending. `read`, `scan` and `verify` take no lock and create nothing; `create` and `open` give a
`Log`, the only writer of its run until it is closed or its process dies. `Log.compact` keeps what a caller made of the
lines as a snapshot, and `accept=` lets `open` and `read` begin behind one. `fork` begins a run with the lines of
another, `salvage` copies what is good of a damaged one. What every error means is in `errors`.

The format, exactly enough for a reader in another language
-----------------------------------------------------------
A run is a directory `<runs>/<run id>/` (0700, files 0600). A run id is 1 to 128 of `a-z 0-9 . _ -`, a letter or
digit first, no dot last, and no device's name (`con`, `nul`, `com1` ...) before its first dot. The directory holds

- `seg-000001.jsonl`, `seg-000002.jsonl` ...: the log, in segments without a gap; every line of it counts;
- `head`: a witness of the last acknowledged line;
- `lock`: locked by the writer with flock(2); JSON in it names the holder, for people only;
- `torn-<segment>-<sha256>`: bytes of unfinished saves, cut off by a later writer, named by their digest;
- `snap-<seq>.json`: snapshots, never needed to read the lines; `.tmp-*`: disposable at any time. Other files are not
  ours.

A line is one save. It ends in a newline and holds no other newline and no NUL, is UTF-8, at most 16 MiB, and is
JSON (without half of a surrogate pair) with exactly these fields, in this order, without spaces between them:

    {"seq":41,"life":2,"at":"2026-11-29T15:14:58.123456Z","prev":"<32 hex>","events":[{...},...],"sum":"<32 hex>"}

- `seq` counts from 0 without gaps, over all segments. `life` is 1 at first, and rises by one with the first line
  that another opening for writing adds. `at` is UTC with six digits, and never runs backwards.
- `sum` is the first 16 bytes, in lower-case hex, of SHA-256 over every byte of the line before `,"sum":`. `prev` is
  the `sum` of the line before, through all segments; 32 zeros in line 0.
- `events` is a list of JSON objects, which mean nothing here; it is empty where a fork's parent began a segment, or
  where the fork takes none of a line. The first line of a segment has, in the place of `events`,
  `"header":{"format":1,"run":...,"nonce":...,"segment":...,"storage":{...},"parent":...,"salvaged":...}`:
  the run id, a random value of the run (the same in each of its segments), the segment's number, what the log stood
  on when it was created, for a fork or a salvaged run its parent's run, seq and sum (else null), and for a salvaged
  run what is missing (else null, or left out). A header may have further fields, to be ignored. Another `format` is
  a newer log, not damage.

A segment gets its name when its header is durable. Every segment but the last ends at its last newline. The last
may end in NULs: the writer lays zeros ahead (64 KiB at a time), syncs them and overwrites them, so that a save
costs one flush.

The head is 256 bytes: JSON with exactly these fields, then spaces, then a newline:

    {"state":"open","segment":1,"seq":41,"offset":9201,"sum":"<32 hex>","check":"<32 hex>"}

`seq` and `sum` are those of the last acknowledged line, `offset` is where it ends in `segment`; seq -1 claims
nothing. `check` is made like a line's `sum`, over every byte before `,"check":`. `state` is `closed` after a proper
close. A head that is not exactly this counts as missing. It is written after each save without a sync, so after a
power cut it is older than the log; it is never newer.

A snapshot is JSON with these fields, then a newline:

    {"run":"...","seq":41,"sum":"<32 hex>","version":1,"state":...,"check":"<32 hex>"}

`seq` and `sum` are those of the last line that `state` was made of, `seq` is also in the file's name, and `check` is
made like a head's. One that is not exactly this, or is of another run, counts as missing. What `state` and `version`
mean is the caller's business. A snapshot is written when its line is durable, behind a new segment's beginning.

How to read. Take lines from the first segment on while each is exactly a line and follows the one before it. Then
look at what is left of the last segment, trailing NULs dropped; the first of these that holds is the answer:

- the head names a later line than the last, or another line than the log holds: damaged;
- the head is closed and is not about the last line, or anything is left behind that: damaged;
- a snapshot names a later line than the last, or another sum than the log holds at its line: damaged;
- nothing is left: the log is whole;
- the bytes up to the next newline, or to the end, hold a NUL or lack the newline, and no line that is good by
  itself, and no other whole line (no NUL in it, beginning like a line), lies behind them: torn, a save that never
  finished. It was not acknowledged, and is no part of the log;
- anything else: damaged. So is anything left in another segment, a missing segment, a segment without a whole
  header.

Damaged means that something durable was lost or changed. The chain shows accidents to anyone, and tampering only to
someone who kept a later `sum` elsewhere: whoever can write the file can also write a new chain.

What is assumed of a disk: a sync that returned keeps its promise; a sector being written may be lost or torn off,
its neighbours are not garbled. What a writer does in which order, and why, stands at the top of `_log`, `_open`,
`_create`, `_ahead`, `_roll`, `_snapshot`, `_head` and `_lock`.
"""

from __future__ import annotations

from eventlog._create import create
from eventlog._disk import DISK, Disk
from eventlog._fork import fork, header
from eventlog._frame import FORMAT, MAX_DEPTH, MAX_LINE
from eventlog._head import Head
from eventlog._line import Gap, Header, Line, Parent, Salvaged, Storage, Torn
from eventlog._lock import Holder, lock_holder
from eventlog._log import Log
from eventlog._names import check_id
from eventlog._open import open_log as open
from eventlog._runs import began, names, runs
from eventlog._salvage import salvage
from eventlog._scan import Reading, read, scan
from eventlog._snapshot import Snapshot
from eventlog._verify import Verdict, verify
from eventlog.errors import (
    BadRunId,
    DiskFailed,
    DiskFull,
    LockLost,
    LogDamaged,
    LogDead,
    LogError,
    NetworkStorage,
    NewerFormat,
    NoSuchRun,
    NotARunsDirectory,
    NotStorable,
    ReadOnly,
    RunExists,
    RunLocked,
)

__all__ = [
    "DISK",
    "FORMAT",
    "MAX_DEPTH",
    "MAX_LINE",
    "BadRunId",
    "Disk",
    "DiskFailed",
    "DiskFull",
    "Gap",
    "Head",
    "Header",
    "Holder",
    "Line",
    "LockLost",
    "Log",
    "LogDamaged",
    "LogDead",
    "LogError",
    "NetworkStorage",
    "NewerFormat",
    "NoSuchRun",
    "NotARunsDirectory",
    "NotStorable",
    "Parent",
    "ReadOnly",
    "Reading",
    "RunExists",
    "RunLocked",
    "Salvaged",
    "Snapshot",
    "Storage",
    "Torn",
    "Verdict",
    "began",
    "check_id",
    "create",
    "fork",
    "header",
    "lock_holder",
    "names",
    "open",
    "read",
    "runs",
    "salvage",
    "scan",
    "verify",
]
