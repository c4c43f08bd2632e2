"""What these tests share: the command in this process, and a directory of runs."""

from tests.cli.conftest import refold, runs

__all__ = ["refold", "runs"]
