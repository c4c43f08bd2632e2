"""The guard: what a save, a turn and a read line may cost, in flushes, bytes and instructions; never in seconds."""
