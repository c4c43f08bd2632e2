"""Compares a log with the current code: audit, retrace, preflight, export. Nothing here acts."""
