"""What version 1 of the log, and of the vocabulary of events, left behind. Nothing in here is changed any more."""
