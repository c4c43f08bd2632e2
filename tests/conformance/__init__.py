"""Frameworks' own tests, with every agent of theirs on a log."""
