"""A reader of logs written from the package's docstring alone, in at most 60 lines, with none of our code."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

LINE = re.compile(
    rb'\{"seq":\d+,"life":\d+,"at":"[^"]{26}Z","prev":"[0-9a-f]{32}","(events":\[|header":\{).*\}\n', re.DOTALL
)
HEAD = re.compile(
    rb'\{"state":"(open|closed)","segment":\d+,"seq":-?\d+,"offset":\d+,"sum":"\w{32}","check":"\w{32}"\} *\n'
)


def sealed(data: bytes, name: str) -> dict[str, Any] | None:
    """Read JSON that ends in a sum over all before it."""
    text, _, end = data.rpartition(f',"{name}":'.encode())
    good = end == b'"%b"}\n' % hashlib.sha256(text).hexdigest()[:32].encode()
    return dict(json.loads(data)) if good else None


def line(data: bytes) -> dict[str, Any] | None:
    """Read a line by itself."""
    return sealed(data, "sum") if LINE.fullmatch(data) and b"\0" not in data and len(data) <= 16 << 20 else None


def judged(run: Path) -> tuple[str, int]:
    """Read a run's directory; say `whole`, `torn` or `damaged`, and how many good lines there are."""
    data = (run / "head").read_bytes() if (run / "head").exists() else b""
    head = sealed(data.rstrip() + b"\n", "check") if HEAD.fullmatch(data) and len(data) == 256 else None
    names = sorted(path.name for path in run.iterdir() if re.fullmatch(r"seg-\d{6}\.jsonl", path.name))
    lines: list[dict[str, Any]] = []
    ends: list[tuple[int, int]] = []
    rest = b""
    for number, name in enumerate(names, start=1):
        data, at = (run / name).read_bytes(), 0
        if name != f"seg-{number:06d}.jsonl":
            return "damaged", len(lines)
        while (stop := data.find(b"\n", at) + 1) and (new := line(data[at:stop])):
            last: dict[str, Any] = lines[-1] if lines else {"seq": -1, "sum": "0" * 32, "life": 1}
            follows = (new["seq"], new["prev"]) == (last["seq"] + 1, last["sum"]) and 0 <= new["life"] - last[
                "life"
            ] < 2
            ours = ("header" in new) == (at == 0) and (at > 0 or new["header"]["segment"] == number)
            if not follows or not ours or (at == 0 and new["header"]["run"] != run.name):
                break
            at, lines, ends = stop, [*lines, new], [*ends, (number, stop)]
        rest = data[at:].rstrip(b"\0")
        if at == 0 or (number < len(names) and len(data) > at):
            return "damaged", len(lines)
    if head and (seq := head["seq"]) >= 0:
        known = seq < len(lines) and (lines[seq]["sum"], ends[seq]) == (head["sum"], (head["segment"], head["offset"]))
        if not known or (head["state"] == "closed" and (seq != len(lines) - 1 or rest)):
            return "damaged", len(lines)
    for path in run.glob("snap-*.json"):
        snap = sealed(path.read_bytes(), "check")
        counts = snap and snap["run"] == run.name and path.name == f"snap-{snap['seq']}.json"
        if snap and counts and [snap["sum"]] != [old["sum"] for old in lines[snap["seq"] :][:1]]:
            return "damaged", len(lines)
    first, newline, after = rest.partition(b"\n")
    whole = [piece + b"\n" for piece in after.split(b"\n")[:-1]]
    later = [piece for piece in whole if line(piece[piece.rfind(b"\0") + 1 :]) or re.match(rb'\{"seq":[^\0]*$', piece)]
    hole = b"\0" in first and line(first[first.rindex(b"\0") + 1 :] + newline)
    unfinished = (b"\0" in first or not newline) and not hole and not later
    return ("damaged" if not names else "whole" if not rest else "torn" if unfinished else "damaged"), len(lines)
