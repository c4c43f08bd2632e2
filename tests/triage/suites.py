"""A workspace's tests are really run once for each content of the workspace, in all of a test session.

What pytest says of a folder depends on the files in it alone, and saying it takes half a second. The jobs under test
pass through the same contents again and again, killed here and there, so each content's answer is kept in a folder that
the session's processes share. The tests of `_suite` itself use it not.
"""

import hashlib
import secrets
from pathlib import Path

import msgspec

from runner.triage import _suite
from runner.triage._task import files

_REAL = _suite.run


class Remembered:
    """`_suite.run` with a memory: results are kept in `folder`, but for those that ran out of time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self, folder: Path, path: str = "", *, seconds: float = _suite.SECONDS, each: bool = False) -> _suite.Suite:
        """See `_suite.run`."""
        asked = hashlib.sha256(f"{path}\n{each}\n".encode())
        for name, place in files(folder):
            data = place.read_bytes()
            asked.update(f"{name}\n{len(data)}\n".encode() + data)
        kept = self._folder / asked.hexdigest()
        if kept.exists():
            return msgspec.json.decode(kept.read_bytes(), type=_suite.Suite)
        suite = _REAL(folder, path, seconds=seconds, each=each)
        if suite.status >= 0:
            beside = kept.with_name(f".tmp-{secrets.token_hex(8)}")
            beside.write_bytes(msgspec.json.encode(suite))
            beside.replace(kept)
        return suite
