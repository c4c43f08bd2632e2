"""Tests of what holds a history against today's code: retrace, preflight, and tests made from runs."""
