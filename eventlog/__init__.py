"""The event log: what happened, in order, durably. It knows no event type, no agent and no model.

    runs = eventlog.store("runs")
    with runs.create("triage-1", at=now, events=[b'{"type":"started"}']) as log:
        log.append(now, [b'{"type":"noted"}'])          # durable when it returns
    for line in runs.read("triage-1").lines: ...

`store` makes a `Store` of a path: a `Directory` of runs. Its `read`, `scan` and `verify` take no lock and create
nothing; `create` and `open` give a `Log`, the only writer of its run until it is closed or its process dies.
`Log.compact` keeps what a caller made of the lines as a snapshot, and `accept=` lets `open` and `read` begin after
one. `fork` begins a run with the lines of another, `salvage` copies what is good of a damaged one. What every error
means is in `errors`.

The format, exactly enough for a reader in another language
-----------------------------------------------------------
A run is a directory `<runs>/<run id>/` (0700, files 0600). A run id is 1 to 128 of `a-z 0-9 . _ -`, a letter or
digit first, no dot last, and no device's name (`con`, `nul`, `com1` ...) before its first dot. The directory holds

- `seg-000001.jsonl`, `seg-000002.jsonl` ...: the log, in segments without a gap; every line of it counts;
- `head`: a witness of the last acknowledged line;
- `lock`: locked by the writer with flock(2); JSON in it names the holder, for people only;
- `torn-<segment>-<sha256>`: bytes of unfinished saves, cut off by a later writer, named by their digest;
- `snap-<seq>.json`: snapshots, never needed to read the lines; `status`: what the writer said of the run when it closed
  it, never needed either; `.tmp-*`: disposable at any time;
- `inbox/`: requests to whoever writes the run, a file each, no part of the log; `copy`: only in a copy, which no writer
  takes. Other files are not ours.

A run that was pruned is only a file `<runs>/.pruned/<run id>` (`_tombstone`).

A line is one save. It ends in a newline and holds no other newline and no NUL, is UTF-8, at most 16 MiB, and is
JSON (without half of a surrogate pair) with exactly these fields, in this order, without spaces between them:

    {"seq":41,"life":2,"at":"2026-11-29T15:14:58.123456Z","prev":"<32 hex>","events":[{...},...],"sum":"<32 hex>"}

- `seq` counts from 0 without gaps, over all segments. `life` is 1 at first, and rises by one with the first line
  that another opening for writing adds. `at` is UTC with six digits, and never runs backwards.
- `sum` is the first 16 bytes, in lower-case hex, of SHA-256 over every byte of the line before `,"sum":`. `prev` is
  the `sum` of the line before, through all segments; 32 zeros in line 0.
- `events` is a list of JSON objects, each nested at most 128 deep, which mean nothing here; it is empty where a fork's
  parent began a segment, or where the fork takes none of a line. The first line of a segment has, in place of `events`,
  `"header":{"format":2,"run":...,"nonce":...,"segment":...,"storage":{...},"parent":...,"salvaged":...}`:
  the run id, a random value of the run (the same in each of its segments), the segment's number, what the log stood
  on when it was created, for a fork or a salvaged run its parent's run, seq and sum (else null), and for a salvaged
  run what is missing (else null, or left out). The header of a segment that was begun for a snapshot has a last field
  `"snapshot":"<32 hex>"`: the first 16 bytes of SHA-256 of the bytes of that snapshot's `state`. A header may have
  further fields, to be ignored; no field is named twice. Another `format` is a log of an earlier or a later edition,
  not damage.

A segment gets its name when its header is durable. Every segment but the last ends at its last newline. The last
may end in NULs: the writer lays zeros ahead (64 KiB at a time), syncs them and overwrites them, so that a save
costs one flush.

The head is 256 bytes: JSON with exactly these fields, then spaces, then a newline:

    {"state":"open","segment":1,"seq":41,"offset":9201,"sum":"<32 hex>","check":"<32 hex>"}

`seq` and `sum` are those of the last acknowledged line, `offset` is where it ends in `segment`; seq -1 claims
nothing. `check` is made like a line's `sum`, over every byte before `,"check":`. `state` is `closed` after a proper
close. A head that is not exactly this counts as missing. It is written after each save without a sync, so after a
power cut it is older than the log; it is never newer.

A snapshot is JSON with exactly these fields, then a newline:

    {"run":"...","seq":41,"sum":"<32 hex>","version":1,"state":...,"check":"<32 hex>"}

`seq` and `sum` are those of the last line that `state` was made of, `seq` is also in the file's name, and `check` is
made like a head's. One that is not exactly this, or is of another run, counts as missing. What `state` and `version`
mean is the caller's business. A snapshot is written when its line is durable, after a new segment's beginning.

A status is like a snapshot, of version 1; what its `state` means is the caller's business. It is written without a sync
just before the head says closed. It says what the run is if the head is closed, both name the same `seq` and `sum`, the
file of the head's segment ends at `offset`, and there is no next one. In every other case only the lines say it.

How to read. Take lines from the first segment on while each is exactly a line and follows the one before it. Then
look at what is left of the last segment, trailing NULs dropped; the first of these that holds is the answer:

- the head names a later line than the last, or another line than the log holds: damaged;
- the head is closed and is not about the last line, or anything is left after that: damaged;
- a snapshot names the last line or a later one, or another sum than the log holds at its line, or the line after that
  is no header with the digest of its state: damaged (that header was durable before it was);
- nothing is left: the log is whole;
- the bytes up to the next newline, or to the end, hold a NUL or lack the newline, and no line that is good by
  itself, and no other whole line (no NUL in it, beginning like a line), lies after them: torn, a save that never
  finished. It was not acknowledged, and is no part of the log;
- anything else: damaged. So is anything left in another segment, a missing segment, a segment without a whole
  header. A directory that has neither a segment nor a head never became a run.

Damaged means that something durable was lost or changed. The chain shows accidents to anyone, and tampering only to
someone who kept a later `sum` elsewhere: whoever can write the file can also write a new chain.

What is assumed of a disk: a sync that returned keeps its promise; a sector being written may be lost or torn off,
its neighbours are not garbled; a file that grew and was not synced may show a deleted file's bytes, but not a whole
line of a log among them. What a writer does in which order, and why, stands at the top of `_file_log`, `_open`,
`_create`, `_preallocate`, `_snapshot`, `_status`, `_head` and `_lock`.
"""

from eventlog._directory import Directory, store
from eventlog._disk import DISK, Disk
from eventlog._frame import MAX_LINE
from eventlog._line import FORMAT, Header, Line, Parent, Salvaged, Storage, Torn
from eventlog._lock import Holder
from eventlog._log import Log
from eventlog._names import check_id
from eventlog._scan import Reading
from eventlog._snapshot import Snapshot
from eventlog._store import Runs, Store
from eventlog._tail import Tail
from eventlog._verify import Verdict
from eventlog.errors import (
    BadRunId,
    DiskFailed,
    DiskFull,
    LockLost,
    LogBusy,
    LogDamaged,
    LogDead,
    LogError,
    NetworkStorage,
    NoSuchRun,
    NotARunsDirectory,
    NotStorable,
    OtherFormat,
    OtherSchema,
    ReadOnly,
    RunExists,
    RunLocked,
    RunPruned,
    Untrusted,
)

__all__ = [
    "DISK",
    "FORMAT",
    "MAX_LINE",
    "BadRunId",
    "Directory",
    "Disk",
    "DiskFailed",
    "DiskFull",
    "Header",
    "Holder",
    "Line",
    "LockLost",
    "Log",
    "LogBusy",
    "LogDamaged",
    "LogDead",
    "LogError",
    "NetworkStorage",
    "NoSuchRun",
    "NotARunsDirectory",
    "NotStorable",
    "OtherFormat",
    "OtherSchema",
    "Parent",
    "ReadOnly",
    "Reading",
    "RunExists",
    "RunLocked",
    "RunPruned",
    "Runs",
    "Salvaged",
    "Snapshot",
    "Storage",
    "Store",
    "Tail",
    "Torn",
    "Untrusted",
    "Verdict",
    "check_id",
    "store",
]
