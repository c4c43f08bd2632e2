"""What goes through a framework without being caught there: frameworks turn exceptions into messages of tools."""

from __future__ import annotations


class ControlSignal(BaseException):
    """The run goes no further in this process: a pause, a stop, another way. `error` says why.

    It is raised again by everything that is done with the run afterwards; the end of the block raises `error` itself.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error
