"""The commands of the demonstration. They come to `refold` by entry points, as those of any package may.

Here is what they share: options, and a look at whether their extra is installed.
"""

import importlib.util
from pathlib import Path

import click

from runner import commands

NEEDS = ("httpx", "pytest", "starlette", "uvicorn")

world = click.option(
    "--world",
    type=click.Path(path_type=Path),
    metavar="DIR",
    show_default="RUNS.world/TASK",
    help="Where the workspace and the tracker's file are.",
)
task = click.option("--task", default="m1-done-after-delete", show_default=True, metavar="T", help="The task's name.")


def check_extra(command: str) -> None:
    """Raise `commands.Refused`, which says what to install, unless all that `command` needs is there."""
    missing = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        why = f"refold {command} needs {', '.join(missing)}, not installed here"
        raise commands.Refused(why, "Install the extra: pip install 'refold[triage]'")
