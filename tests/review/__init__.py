"""Tests of what compares a log with the current code."""
