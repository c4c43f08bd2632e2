"""Runs in a real PostgreSQL database: what only they have, and what they have like runs in a directory."""
