"""Commands that other packages bring, found by the entry-point group `refold.commands`; see `runner.commands`."""

from collections.abc import Collection, Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Never

import click

from runner._cli._io.errors import Refused

GROUP = "refold.commands"


def names(taken: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    """The names that are not `taken`, sorted under a heading each: other packages' first, our demonstration last."""
    entries = [entry for entry in entry_points(group=GROUP) if entry.name not in taken]
    demonstration = {entry.name for entry in entries if _package(entry) == "refold"}
    yield "Commands of other packages", sorted({entry.name for entry in entries} - demonstration)
    yield "Demonstration", sorted(demonstration)


def command(name: str) -> click.Command | None:
    """The command of this name, or None. One that can't be imported is a command that says so."""
    entry = next(iter(entry_points(group=GROUP, name=name)), None)
    if entry is None:
        return None
    try:
        loaded = entry.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 (another package's code: whatever it raises is its answer)
        return _broken(entry, f"{type(error).__name__}: {error}")
    if not isinstance(loaded, click.Command):
        return _broken(entry, f"{entry.value} is a {type(loaded).__name__}, not a click.Command")
    return loaded


def _broken(entry: EntryPoint, why: str) -> click.Command:
    def refuse() -> Never:
        hint = f"Mend or uninstall {_package(entry)}, which brings it."
        raise Refused(f"the command {entry.name} can't be imported: {why}", hint)

    lenient = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(entry.name, lenient, refuse, short_help=f"(can't be imported: {why})", add_help_option=False)


def _package(entry: EntryPoint) -> str:
    return "an unknown package" if entry.dist is None else entry.dist.name
