"""Tests of what compares a history with the current code: retrace, preflight, and tests made from runs."""
