"""Tests of what a log means: the vocabulary, its bytes, the state and the fold."""
