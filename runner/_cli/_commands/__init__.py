"""The commands, one file a subject."""
