"""Power cuts: what a simulated disk may hold after any of them, and what a log must make of it."""
