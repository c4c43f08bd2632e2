"""What acts: the only code that reaches a tool, a model or a thread, and saves what came of it."""
