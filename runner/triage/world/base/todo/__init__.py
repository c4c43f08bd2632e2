"""A small to-do list for the terminal."""

__version__ = "1.4.0"
