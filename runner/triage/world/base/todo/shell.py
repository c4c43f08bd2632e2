"""The words a person types, turned into calls of the service."""

from collections.abc import Callable
from datetime import date

from todo.service import Service
from todo.store import NoSuchItem

Say = Callable[[str], None]


class BadCommand(ValueError):
    """The words make no command."""


def run(service: Service, words: list[str], say: Say) -> int:
    """Run one command; 0 if it was done, 1 if it could not be."""
    name, *rest = words
    try:
        command = COMMANDS[name]
    except KeyError:
        say(f"todo: there is no command {name!r}; there are: {', '.join(COMMANDS)}")
        return 1
    try:
        command(service, rest, say)
    except (BadCommand, NoSuchItem) as error:
        say(f"todo: {error}")
        return 1
    return 0


def _number(words: list[str]) -> int:
    if len(words) != 1 or not words[0].isdigit():
        raise BadCommand("which item? give its number")
    return int(words[0])


def _add(service: Service, words: list[str], say: Say) -> None:
    due = None
    if "--due" in words:
        place = words.index("--due")
        due = date.fromisoformat(words[place + 1])
        words = words[:place] + words[place + 2 :]
    if not words:
        raise BadCommand("add what?")
    item = service.add(" ".join(words), due)
    say(f"added {item.number}")


def _list(service: Service, words: list[str], say: Say) -> None:
    for item in service.find(" ".join(words)):
        say(str(item))


def _done(service: Service, words: list[str], say: Say) -> None:
    item = service.done(_number(words))
    say(f"done: {item.text}")


def _rename(service: Service, words: list[str], say: Say) -> None:
    number, *text = words
    item = service.rename(_number([number]), " ".join(text))
    say(f"renamed: {item.text}")


def _delete(service: Service, words: list[str], say: Say) -> None:
    item = service.delete(_number(words))
    say(f"deleted: {item.text}")


def _next(service: Service, words: list[str], say: Say) -> None:
    item = service.next_due()
    say(str(item) if item else "nothing to do")


COMMANDS = {
    "add": _add,
    "list": _list,
    "done": _done,
    "rename": _rename,
    "delete": _delete,
    "next": _next,
}
