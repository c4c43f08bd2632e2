"""Golden histories: runs that a version left behind, and that every later one must fold, audit and retrace."""
