"""Programs with a loop of their own, on a run's log."""
