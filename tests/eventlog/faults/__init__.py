"""Faults: every error of the system, at every operation, through the seam and on the real system."""
