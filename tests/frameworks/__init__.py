"""Tests of frameworks that keep their own loop."""
