"""Names a clash: the names of the three packages are common words, and a program may have a file of the same name.

Ours stand beside each other in one folder. A `replay.py` or `eventlog.py` that Python finds first would fail somewhere
inside of runner, far from its cause. A program's own `runner.py` is imported instead of this package, which then can't
say anything.
"""

import importlib
from pathlib import Path

HOME = Path(__file__).parents[1]

for name in ("eventlog", "replay"):  # in this order: replay imports eventlog
    found = importlib.import_module(name).__file__ or "a folder without code"
    if Path(found).parent != HOME / name and Path(found).resolve().parent != HOME.resolve() / name:
        message = (
            f"the package {name} that Python imports is {found}, not refold's in {HOME}: "
            "rename your own file, or uninstall the distribution that brings it"
        )
        raise ImportError(message, name=name)
