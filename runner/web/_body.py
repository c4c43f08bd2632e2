"""Bodies of any size and shape: a service, or whoever answers in its place, must not fill the memory of a run.

A client reads and unpacks a whole body before anybody sees it. `BodyLimit`, as a response hook, reads it instead, and
stops at a size. What was cut is still an answer: its status says what became of the request.
"""

import codecs
import json
import zlib
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

MOST: Final = 8 << 20
"""Bytes of a body that are looked at."""
MOST_DEPTH: Final = 60
_CUT: Final = "refold-cut"
_WINDOWS: Final = {"": 0, "identity": 0, "gzip": 31, "deflate": 15}
"""Encodings that can be unpacked a little at a time, and what zlib calls them."""


class _Body:
    """A body as it comes, unpacked up to a size."""

    def __init__(self, encoding: str, most: int) -> None:
        self.data = bytearray()
        self._most = most
        self._window = _WINDOWS.get(encoding)
        self._unpack = zlib.decompressobj(self._window) if self._window else None

    def full(self, chunk: bytes) -> bool:
        """Take a piece; whether no more is wanted, because this is enough or can't be unpacked."""
        room = self._most - len(self.data)
        if self._window is None or (chunk and not room):
            return True
        if self._unpack is None:
            self.data += chunk[:room]
            return len(chunk) > room
        try:
            self.data += self._unpack.decompress(chunk, room)
        except zlib.error:
            if self._window != 15 or self.data:  # noqa: PLR2004 (some servers leave the header of a deflate body out)
                return True
            self._unpack, self._window = zlib.decompressobj(-15), -15
            return self.full(chunk)
        return bool(self._unpack.unconsumed_tail)


@dataclass(frozen=True)
class BodyLimit:
    """A response hook that reads at most `most` bytes of a body, unpacked.

    A longer one is cut. One that was packed twice, or otherwise than by gzip or deflate, is not read at all.
    """

    most: int = MOST

    def __call__(self, response: Any) -> Any:
        """Read the body of this response. An async client awaits what this returns."""
        body = _Body(response.headers.get("content-encoding", "").strip().lower(), self.most)
        if hasattr(response.stream, "__aiter__"):
            return self._awaited(response, body)
        cut = any(body.full(chunk) for chunk in response.iter_raw())
        response.close()
        return _keep(response, body, cut=cut)

    async def _awaited(self, response: Any, body: _Body) -> None:
        cut = False
        async for chunk in response.aiter_raw():
            cut = body.full(chunk)
            if cut:
                break
        await response.aclose()
        _keep(response, body, cut=cut)


def _keep(response: Any, body: _Body, *, cut: bool) -> None:
    response._content = bytes(body.data)  # noqa: SLF001 (where both libraries keep what `read` has read)
    if cut:
        response.extensions[_CUT] = len(body.data)


limit_body = BodyLimit()
"""The hook for most services: 8 MiB."""


def content(response: Any) -> Any:
    """The JSON or text of a body; of a long one the first `MOST` bytes, as text that says so. Never raises."""
    data, cut = _bytes(response, MOST)
    if not cut and "json" in response.headers.get("content-type", "").partition(";")[0]:
        with suppress(ValueError, RecursionError):  # the request was carried out, whatever its answer looks like
            value = json.loads(data)
            if not _is_deep(value):
                return value
    text = _decoded(response, data)
    return f"{text}\n[cut here: the service's answer is longer, or packed in a way that is not read]" if cut else text


def start(response: Any, most: int) -> str:
    """The first `most` characters of a body as text; of a stream that nobody has read, nothing."""
    try:
        return _decoded(response, _bytes(response, most * 4)[0])[:most]
    except RuntimeError:
        return ""


def _bytes(response: Any, most: int) -> tuple[bytes, bool]:
    data: bytes = response.content
    return data[:most], len(data) > most or _CUT in getattr(response, "extensions", ())


def _decoded(response: Any, data: bytes) -> str:
    """Bytes as text, by the encoding that the service named if it is one of text, else UTF-8."""
    named = getattr(response, "charset_encoding", None) or "utf-8"
    with suppress(LookupError, ValueError):
        if codecs.lookup(named).name in _KNOWN:
            return data.decode(named, "replace")
    return data.decode("utf-8", "replace")


_KNOWN: Final = frozenset({"utf-8", "utf-16", "ascii", "iso8859-1", "cp1252"})
"""Encodings that take time in proportion to the text, as Python names them; others, such as punycode, may not."""


def _is_deep(value: Any) -> bool:
    """Whether it is nested deeper than a result may be."""
    depth, level = 0, [value]
    while level and depth <= MOST_DEPTH:
        depth += 1
        level = [v for x in level for v in (x.values() if isinstance(x, dict) else x if isinstance(x, list) else ())]
    return bool(level)
