"""Tests of what a user declares: tools, their arguments, agents."""
