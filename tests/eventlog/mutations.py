"""Mutations of a log whose sums and checks are right: what an error in another writer, or a hand, could leave.

A changed byte is found by its sum. So a mutation changes what a line, a head or a snapshot says, makes the sum anew,
and mostly the chain after it too; whatever is left to tell good from bad is then the reader's own rules.
"""

from __future__ import annotations

import random
import re

from eventlog import _frame
from tests.support import sample_logs

TOKENS = (
    b"{}", b"[]", b"null", b"true", b"0", b"-0", b"-1", b"2", b"01", b"1.0", b"1e5", b"1e999", b"-1e999", b"NaN",
    b"9223372036854775808", b"18446744073709551616", b"999999999999999999", b"1000000000000000000",
    b"7" * 30, b"7" * 5000, b"-" + b"7" * 25, b'""', b'"r"', b'"open"', b'"power loss"',
    b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\ud83d\\ude00"', b'"\\u0000"', b'"\xc3\xa9"', b'"\xff"', b'"\x01"',
    b'{"a":1,"a":2}', b'{"a":"\\ud800"}', b"[" * 40 + b"]" * 40,
)  # fmt: skip
VALUE = re.compile(rb'(?<=:)(?:"[^"\\]*"|-?[0-9]+|null|true|false|\{[^{}]*\}|\[[^\[\]]*\])')
PAIR = re.compile(rb'"[a-z_]+":(?:"[^"\\]*"|-?[0-9]+|null|\{[^{}]*\})')
NAMES = ("seg-000000.jsonl", "seg-000002.jsonl", "seg-000003.jsonl", "seg-1.jsonl", "snap-0.json", "snap-1.json",
         "snap-01.json", "snap-99.json", "head", "torn-000001-00", ".tmp-x", "seg-000001.jsonl")  # fmt: skip


def mutated(content: dict[str, bytes], rng: random.Random) -> dict[str, bytes]:
    """Change a log in one or two places."""
    content = dict(content)
    for _ in range(rng.choice((1, 1, 1, 2))):
        name = rng.choice(sorted(content))
        kind = name.partition("-")[0]
        if rng.random() < 0.08:
            _rename(content, name, rng)
        elif kind == "seg":
            _line(content, name, rng)
        elif kind == "head":
            content[name] = sealed(_said(content[name], b',"check":', rng), b"check", 256)
        elif kind == "snap":
            content[name] = sealed(_said(content[name], b',"check":', rng), b"check")
    return content


def sealed(text: bytes, name: bytes, size: int = 0) -> bytes:
    """Give a text its digest, and pad it."""
    whole = b'%b,"%b":"%b"}' % (text, name, _frame.digest(text).encode())
    return whole.ljust(size - 1) + b"\n"


def _line(content: dict[str, bytes], name: str, rng: random.Random) -> None:
    """Change one line, and the chain of all that follow it in any segment, or of none."""
    data = content[name]
    lines = data.rstrip(b"\0").splitlines(keepends=True)
    if not lines:
        return
    at = rng.randrange(len(lines))
    before = lines[at][-35:-3] if len(lines[at]) > 43 else b""
    lines[at] = sealed(_said(lines[at], b',"sum":', rng), b"sum")
    content[name] = b"".join(lines) + b"\0" * (len(data) - len(data.rstrip(b"\0")))
    if rng.random() < 0.7:
        link(content, before, lines[at][-35:-3])


def link(content: dict[str, bytes], old: bytes, new: bytes) -> None:
    """Have the line that followed one sum follow another, and so on to the end."""
    while old and old != new:
        found = next(((n, d) for n, d in sorted(content.items()) if b'"prev":"%b"' % old in d), None)
        if found is None:
            break
        name, data = found
        start = data.rfind(b"\n", 0, data.index(b'"prev":"%b"' % old)) + 1
        end = data.find(b"\n", start) + 1 or len(data)
        line = data[start:end]
        text = line.replace(b'"prev":"%b"' % old, b'"prev":"%b"' % new).rpartition(b',"sum":')[0]
        old, new = line[-35:-3], _frame.digest(text).encode()
        content[name] = data[:start] + sealed(text, b"sum") + data[end:]
    for name in [name for name in content if name == "head" or name.startswith("snap-")]:
        if b'"%b"' % old in content[name]:
            text = content[name].replace(b'"%b"' % old, b'"%b"' % new).rpartition(b',"check":')[0]
            content[name] = sealed(text, b"check", 256 if name == "head" else 0)


def _said(data: bytes, tail: bytes, rng: random.Random) -> bytes:
    """Change what stands before the sum."""
    text = data.rpartition(tail)[0]
    values, pairs = list(VALUE.finditer(text)), list(PAIR.finditer(text))
    way = rng.randrange(6)
    if way == 0 and values:
        found = rng.choice(values)
        return text[: found.start()] + rng.choice(TOKENS) + text[found.end() :]
    if way == 1 and pairs:  # a key given twice, before or after
        found = rng.choice(pairs)
        key = found[0].partition(b":")[0]
        twice = b"%b,%b:%b" % (found[0], key, rng.choice((*TOKENS, found[0].partition(b":")[2])))
        if rng.random() < 0.5:
            twice = b"%b:%b,%b" % (key, rng.choice(TOKENS), found[0])
        return text[: found.start()] + twice + text[found.end() :]
    if way == 2 and pairs:  # a field more
        found = rng.choice(pairs)
        return text[: found.end()] + b',"more":' + rng.choice(TOKENS) + text[found.end() :]
    if way == 3 and pairs:  # a field less
        found = rng.choice(pairs)
        return text[: found.start()] + text[found.end() + 1 :]
    at = rng.randrange(len(text) + 1) if text else 0
    if way == 4:
        return text[:at] + rng.choice((b" ", b"\t", b"\r", b",", b"\xef\xbb\xbf", b"\\", b'"', b"}", b"\0")) + text[at:]
    return text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :]


def _rename(content: dict[str, bytes], name: str, rng: random.Random) -> None:
    other = rng.choice(NAMES)
    if rng.random() < 0.5:
        content[other] = content[name]
    else:
        content[other] = content.pop(name)


def logs() -> list[dict[str, bytes]]:
    """Give a log of each kind."""
    return [sample_logs.log(kind) for kind in sample_logs.KINDS]
