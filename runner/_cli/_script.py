"""The script `refold`: Ctrl-C while it is imported, a third of a second, ends it as any command, without a traceback.

It is shipped under a name of its own beside the packages (`_refold_script`): as a part of `runner` it would be imported
after all of that.
"""

import signal


def main() -> None:
    """Run the command line."""
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeded:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from runner._cli import main as command

    if heeded:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command()
