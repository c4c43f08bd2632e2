"""Plugins for pytest, for sessions that run a framework's own tests."""
