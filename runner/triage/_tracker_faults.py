"""Faults that the demonstration's tracker can be given, kept beside its file.

The tracker reads them at every request, so a running one changes at once. The job reads them when it declares its
tools, because a tool's effect is a statement about the service: a tracker that ignores keys makes filing a
`non_idempotent`.
"""

from pathlib import Path

import msgspec

from runner.triage import _files
from runner.triage.errors import WrongWorld

DAY = 86_400.0


class TrackerFaults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the tracker misbehaves; without arguments it does not.

    Args:
        ignore_keys: every request makes a new issue or comment.
        key_ttl: seconds for which a key is remembered.
        delay: seconds between the commit and the reply.
        lookup_down: asking for what came under a key answers 503.
    """

    ignore_keys: bool = False
    key_ttl: float = DAY
    delay: float = 0.0
    lookup_down: bool = False


def read(world: Path) -> TrackerFaults:
    """The faults that `world` keeps; none if none were set.

    Raises:
        WrongWorld: the file holds something else. A misspelt fault that is ignored would let a test pass for nothing.
    """
    try:
        return msgspec.json.decode(_files.read(world / "tracker.json"), type=TrackerFaults)
    except FileNotFoundError:
        return TrackerFaults()
    except (OSError, msgspec.MsgspecError, UnicodeError) as error:
        raise WrongWorld(str(world), f"tracker.json can't be read: {error}") from error


def write(world: Path, faults: TrackerFaults) -> None:
    """Keep `faults` in `world`, which is made (mode 0700) if absent. A running tracker has them at its next request.

    Raises:
        WrongWorld: there can't be a world at this path.
    """
    try:
        _files.make_private(world)
        _files.replace(world / "tracker.json", msgspec.json.format(msgspec.json.encode(faults)) + b"\n")
    except OSError as error:
        raise WrongWorld(str(world), error.strerror or str(error)) from error
