"""For packages that bring commands of their own to `refold`.

An entry point of the group `refold.commands` names a `click.Command`; the entry point's name is the command's:

    [project.entry-points."refold.commands"]
    invoices = "acme.commands:invoices"

`refold --help` lists it after refold's own commands. It is imported when it is run or listed, at no other time. A name
that refold uses itself stays refold's. A command that can't be imported is listed with the reason; the others work.

What the command raises ends it as refold's own commands end: one sentence on stderr, a second line with the error's
`hint` if it has one, and the error's `exit_status` if it has one, else 1. click's own errors stay click's. A command
may print with click alone; `out` here also makes text safe for a terminal, and `carry_on` is what `refold run` does
with a run: it shows progress, asks whoever sits at the terminal, prints the answer.
"""

from runner._cli import options
from runner._cli._io import out
from runner._cli._io.errors import Refused, Status, leave
from runner._cli.drive import carry_on

__all__ = ["Refused", "Status", "carry_on", "leave", "options", "out"]
