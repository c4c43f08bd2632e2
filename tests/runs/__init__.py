"""Tests of forks: a run that goes on from an earlier line, and the fork guard around what its parent did after it."""
