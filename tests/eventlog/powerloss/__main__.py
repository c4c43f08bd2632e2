"""Repeat one sweep, as a kept report says: `python -m tests.eventlog.powerloss create,two,one --model ext4`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.eventlog.powerloss.census import MODELS
from tests.eventlog.powerloss.story import STEPS
from tests.eventlog.powerloss.sweep import Tally, power, understood


def main() -> int:
    """Sweep, print what was found, and fail when something was violated."""
    about = "Sweep one story with power cuts."
    parser = argparse.ArgumentParser(prog="python -m tests.eventlog.powerloss", description=about)
    parser.add_argument("steps", help=f"comma-separated, create first: create, {', '.join(STEPS)}")
    parser.add_argument("--model", choices=MODELS, default="posix")
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        help="kill:NTH:BYTES, sync:NTH:clean|back|dirty or full:NTH:BYTES; a second one is for the second process",
    )
    parser.add_argument("--limit", type=int, default=64, help="images of one cut")
    parser.add_argument("--inside", type=int, default=0, metavar="N", help="sweep one image in N inside its recovery")
    parser.add_argument("--keep", type=Path, help="where to keep the first image that violates something")
    given = parser.parse_args()
    tally = Tally(given.keep)
    power(
        tally,
        given.steps.split(","),
        given.model,
        faults=[understood(fault) for fault in given.fault],
        limit=given.limit,
        inside=given.inside,
    )
    sys.stdout.write("\n".join([*tally.violations, str(tally)]) + "\n")
    return bool(tally.violations)


if __name__ == "__main__":
    sys.exit(main())
