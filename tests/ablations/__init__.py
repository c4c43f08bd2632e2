"""Ablations: a safeguard taken out, and the sweep or the hazard that must then go red."""
