"""crashtest: whether an agent survives a crash anywhere, and simulated disks for tests of crashes, harsher than one.

`sweep` is for your own agent: it runs it once to find every point where a crash can land, then from scratch for each,
with a second crash during the resume, and counts what it did to the world. In a test it is two lines,
`swept = crashtest.sweep(world=Bank, agent=teller, task="Pay the rent.", effects=Bank.counts)` and
`assert not swept.failures, swept`.

The rest is what it is made of, and what the log itself is tested with. A log is only as good as what a power cut leaves
of it, and no test can pull the plug often enough. Here the disk is in memory and keeps a record of what it was asked to
do; from the record come the images that a cut after each operation may leave:

    machine = crashtest.Machine()
    log = eventlog.create("/runs", "r", at=now, events=[b"{}"], disk=crashtest.Process(machine))
    made = len(machine.trace)
    log.append(now, [b'{"n":1}'])
    for cut in crashtest.cuts(machine.trace, "posix", first=made):
        after = crashtest.Process(crashtest.Machine(cut.image))
        lines = eventlog.read("/runs", "r", disk=after).lines
        assert len(lines) == 3 or (len(lines) == 2 and cut.after < len(machine.trace))

What may be in an image: of every 512-byte sector that was not synced any version since the last sync, each sector by
itself; of a file that grew any size, and NULs or a deleted file's bytes where nothing was written durably; of names
what the model allows (`ext4`: changes in one order; `posix`: any subset until the directory is synced). What is
assumed: a sync that returned keeps its promise, a sector is written whole or not at all, a name never stands for
nothing while it is replaced, and what a deleted file left behind is not itself a whole line of a log.

- A process that dies is `Process.die()`: the page cache stays, and another `Process` of the machine goes on with it.
- A disk that fails is `Faulty(disk, Fault(...))`, before a simulated disk or before `eventlog.DISK`;
  `Passing` is the disk before another one to make your own of.
- A crash inside a recovery is a record that began on an image: `cuts(after.trace, model, start=cut.image)`.
- A failing image is kept with `keep`.
"""

from __future__ import annotations

from runner.crashtest._cast import Again, Without
from runner.crashtest._cuts import LIMIT, Cut, cuts
from runner.crashtest._directories import Model
from runner.crashtest._faults import CHANGES, VERBS, Fault, Faulty, Killed
from runner.crashtest._image import EMPTY, Image, disposable
from runner.crashtest._judged import Scenario
from runner.crashtest._keep import keep
from runner.crashtest._killed import killed
from runner.crashtest._machine import Machine
from runner.crashtest._ops import (
    SECTOR,
    Change,
    DirectorySynced,
    Named,
    Op,
    Pages,
    Sized,
    Synced,
    SyncFailed,
    Wrote,
    says,
)
from runner.crashtest._passing import Passing
from runner.crashtest._plan import MODES, Mode, NoSuchScenario, NotRepeatable
from runner.crashtest._process import Process
from runner.crashtest._sweep import Progress, WorkerFailed, said_otherwise, sweep
from runner.crashtest._swept import Row, Swept, table

__all__ = [
    "CHANGES",
    "EMPTY",
    "LIMIT",
    "MODES",
    "SECTOR",
    "VERBS",
    "Again",
    "Change",
    "Cut",
    "DirectorySynced",
    "Fault",
    "Faulty",
    "Image",
    "Killed",
    "Machine",
    "Mode",
    "Model",
    "Named",
    "NoSuchScenario",
    "NotRepeatable",
    "Op",
    "Pages",
    "Passing",
    "Process",
    "Progress",
    "Row",
    "Scenario",
    "Sized",
    "Swept",
    "SyncFailed",
    "Synced",
    "Without",
    "WorkerFailed",
    "Wrote",
    "cuts",
    "disposable",
    "keep",
    "killed",
    "said_otherwise",
    "says",
    "sweep",
    "table",
]
