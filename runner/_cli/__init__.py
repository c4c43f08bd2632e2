"""The command `refold`: words, tables and exit statuses around what runner, replay and eventlog make public.

It is an application of the three packages and adds no power to them: whatever it does, a program can do by importing
`runner`. One noun lives in each file; `_main` is the list of commands, `_errors` the only place where an error becomes
a sentence and an exit status.
"""

from runner._cli._main import main

__all__ = ["main"]
