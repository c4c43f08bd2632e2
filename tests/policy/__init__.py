"""Tests of the pure half of runner: what comes next, decided from a state and the time, without a disk or a clock."""
