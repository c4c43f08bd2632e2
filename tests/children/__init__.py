"""Child runs."""
