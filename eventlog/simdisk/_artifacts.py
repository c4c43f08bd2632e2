"""A failing image, kept: its tree, and beside it a text that says what failed, where the power went, how to repeat it.

A violation that cannot be looked at again is a rumour; so whoever finds one writes it down before anything else.
"""

from collections.abc import Sequence
from pathlib import Path

from eventlog.simdisk._power_cut import Cut
from eventlog.simdisk._trace import Op, says

_BEFORE = 12


def keep(cut: Cut, place: Path, *, why: str, trace: Sequence[Op], repeat: str) -> Path:
    """Write a cut's image into a new directory under `place` and give that directory; `REPORT` in it explains it.

    `why` says what was wrong, `trace` is the record it was cut from, `repeat` the command that finds it again. The
    image's tree is in `disk/`, so that `refold verify --runs <it>/disk/<runs> RUN` reads it like any other.
    """
    directory = place / cut.image.key().hex()
    cut.image.write_to(directory / "disk")
    report = f"{why}\n\nrepeat: {repeat}\n\nThe power went after operation {cut.after} of {len(trace)}:\n"
    for number, op in enumerate(trace[: cut.after], start=1):
        if number > cut.after - _BEFORE:
            report += f"{number:5} {says(op)}\n"
    (directory / "REPORT").write_text(report, encoding="utf-8")
    return directory
