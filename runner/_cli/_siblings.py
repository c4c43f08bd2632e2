"""The three import names are common words, so the command first makes sure that all three are ours.

Somebody's own `replay.py`, or another distribution's `eventlog`, would otherwise end in a mystery far from its cause.
Ours stand beside each other in one folder, and offer the names this command is built on.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import eventlog
import replay
import runner
from runner._cli._errors import Refused

_OFFERS = {"eventlog": "verify", "replay": "TRANSITIONS", "runner": "resume"}


def check(*packages: ModuleType) -> None:
    """Raise `Refused` when one of the three packages is not from the same place as this command."""
    packages = packages or (eventlog, replay, runner)
    home = Path(__file__).resolve().parents[2]
    for package in packages:
        name = package.__name__
        file = getattr(package, "__file__", None)
        stands = Path(file).resolve() if file else None
        if stands is None or stands != home / name / "__init__.py" or not hasattr(package, _OFFERS[name]):
            raise Refused(
                f"the package {name} that Python imports is {stands or 'a folder without code'}, not refold's",
                f"refold's is in {home}. Rename your own file, or uninstall the distribution that brings it.",
            )
