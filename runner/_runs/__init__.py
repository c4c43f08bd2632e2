"""Runs seen from outside: load one, list them, answer their questions, fork them."""
