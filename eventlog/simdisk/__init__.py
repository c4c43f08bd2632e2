"""simdisk: a disk in memory, for tests of crashes and power cuts. It knows no runner.

A log is only as good as what a power cut leaves of it, and no test can pull the plug often enough. Here the disk is in
memory and keeps a record of what it was asked to do; from the record come the images that a cut after each operation
may leave:

    machine = simdisk.Machine()
    runs = eventlog.Directory("/runs", disk=simdisk.Process(machine))
    log = runs.create("r", at=now, events=[b"{}"])
    made = len(machine.trace)
    log.append(now, [b'{"n":1}'])
    for cut in simdisk.cuts(machine.trace, first=made):
        after = simdisk.Process(simdisk.Machine(cut.image))
        lines = eventlog.Directory("/runs", disk=after).read("r").lines
        assert len(lines) == 3 or (len(lines) == 2 and cut.after < len(machine.trace))

What may be in an image: of every 512-byte sector that was not synced any version since the last sync, each sector by
itself; of a file that grew any size, and NULs or a deleted file's bytes where nothing was written durably; of names
any subset of the changes until their directory is synced, or in the model `ext4` the first so many of all. What is
assumed: a sync that returned keeps its promise, a sector is written whole or not at all, a name never stands for
nothing while it is replaced, and what a deleted file left is not itself a whole line of a log.

- A process that dies is `Process.die()`: the page cache stays, and another `Process` of the machine goes on with it.
- `DiskProxy` is a disk before another one, to make your own of: one that fails, or dies (`Killed`), where a test says.
- A crash inside a recovery is a record that began on an image: `cuts(after.trace, start=cut.image)`.
"""

from eventlog.simdisk._directories import Model
from eventlog.simdisk._image import Image
from eventlog.simdisk._machine import Machine
from eventlog.simdisk._power_cut import Cut, cuts
from eventlog.simdisk._process import Process
from eventlog.simdisk._proxy import CHANGES, DiskProxy, Killed
from eventlog.simdisk._trace import Change, Named, Op, Sized, Synced, Wrote

__all__ = [
    "CHANGES",
    "Change",
    "Cut",
    "DiskProxy",
    "Image",
    "Killed",
    "Machine",
    "Model",
    "Named",
    "Op",
    "Process",
    "Sized",
    "Synced",
    "Wrote",
    "cuts",
]
