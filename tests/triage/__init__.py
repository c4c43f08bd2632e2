"""Tests of the triage job: real workspaces, real trackers, real deaths."""
