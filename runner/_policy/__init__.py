"""What happens next: every choice of a run, from its state and the time alone. The whole folder is pure."""
