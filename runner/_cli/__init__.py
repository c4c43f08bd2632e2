"""The command `refold`: words, tables and exit statuses around what runner, replay and eventlog make public.

It is an application of the three packages and adds no power to them: whatever it does, a program can do by importing
`runner`. `main` is the list of commands; `_io/errors` is the only place where an error becomes a sentence and an exit
status.
"""

from runner._cli.main import main

__all__ = ["main"]
