"""Ablations: a safeguard taken out, and the sweep or the test of a fault that must then go red."""
