"""Runs in a real database, tortured: workers killed, frozen, cut off; a witness outside judges."""
