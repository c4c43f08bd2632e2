"""``python -m todo FILE [COMMAND ...]``; without a command, one a line from standard input."""

import shlex
import sys
from pathlib import Path

from todo.service import Service
from todo.shell import run


def main(arguments: list[str]) -> int:
    if not arguments:
        print("usage: python -m todo FILE [COMMAND ...]", file=sys.stderr)
        return 2
    service = Service(Path(arguments[0]))
    if len(arguments) > 1:
        commands = [arguments[1:]]
    else:
        commands = (shlex.split(line) for line in sys.stdin if line.strip())
    status = 0
    for words in commands:
        status = max(status, run(service, words, print))
    service.save()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
