"""The crash sweep itself: what it finds, what it must not find, and that it finds what is taken out."""
