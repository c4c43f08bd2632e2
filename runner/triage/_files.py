"""Small files that are either the old one or the new one, whenever the process or the power goes."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def replace(file: Path, data: bytes) -> None:
    """Put `data` (0600) where `file` is: a temporary file beside it, synced, renamed, the directory synced."""
    beside = file.with_name(f".tmp-{file.name}-{secrets.token_hex(4)}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
        beside.replace(file)
    except BaseException:  # whatever ends this leaves no half-made file, and goes on up
        beside.unlink(missing_ok=True)
        raise
    sync(file.parent)


def sync(path: Path) -> None:
    """Make what `path` (a file or a directory) holds durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
