"""Tests of forks: a run that goes on from an earlier line, and the fence around what its parent did behind it."""
