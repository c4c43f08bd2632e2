"""The list on disk: one JSON file, replaced as a whole."""

import json
import os
from pathlib import Path

from todo.item import Item
from todo.store import Store

VERSION = 2


class BadFile(ValueError):
    """The file is not a list that this version can read."""


def load(path: Path) -> Store:
    """The list at `path`; an empty one if there is no file yet."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Store()
    try:
        data = json.loads(text)
    except ValueError:
        raise BadFile(f"{path.name} is not JSON") from None
    if not isinstance(data, dict) or data.get("version") != VERSION:
        raise BadFile(f"{path.name} was not written by this version of todo")
    store = Store(Item.from_json(entry) for entry in data["items"])
    store.last = int(data.get("last", 0))
    return store


def save(path: Path, store: Store) -> None:
    """Write the list beside `path`, then move it there, so that a crash leaves the old list."""
    data = {"version": VERSION, "last": store.last, "items": [item.to_json() for item in store]}
    beside = path.with_name(path.name + ".new")
    beside.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(beside, path)
