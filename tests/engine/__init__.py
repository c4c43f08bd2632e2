"""Tests of the acting half of runner, through its public face: real directories, real processes, real deaths."""
