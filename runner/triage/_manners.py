"""The tracker's manners: how well it behaves, kept in its world.

The tracker reads them at every request, so that a running one obeys a change at once; the job reads them when it
declares its tools, because a tool's effect is a statement about the service: a tracker that ignores keys makes filing
a `once`.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from runner.triage import _files
from runner.triage.errors import WrongWorld

DAY = 86_400.0


class Manners(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the tracker behaves.

    `ignore_keys`: every request makes a new issue or comment. `key_ttl`: seconds for which a key is remembered.
    `delay`: seconds between the commit and the reply. `lookup_down`: asking for what came under a key answers 503.
    """

    ignore_keys: bool = False
    key_ttl: float = DAY
    delay: float = 0.0
    lookup_down: bool = False


def read(world: Path) -> Manners:
    """The manners that `world` keeps; good ones if none were set.

    Raises `WrongWorld` when the file holds something else: manners nobody asked for would make a test say the wrong
    thing.
    """
    try:
        data = (world / "tracker.json").read_bytes()
        return msgspec.json.decode(data, type=Manners)
    except FileNotFoundError:
        return Manners()
    except (OSError, msgspec.MsgspecError, UnicodeError) as error:
        raise WrongWorld(str(world), f"tracker.json can't be read: {error}") from error


def write(world: Path, manners: Manners) -> None:
    """Keep `manners` in `world`, which is made (0700) if absent; a running tracker obeys from its next request on."""
    try:
        world.mkdir(mode=0o700, parents=True, exist_ok=True)
        _files.replace(world / "tracker.json", msgspec.json.format(msgspec.json.encode(manners)) + b"\n")
    except OSError as error:
        raise WrongWorld(str(world), error.strerror or str(error)) from error
