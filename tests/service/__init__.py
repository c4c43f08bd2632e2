"""Many runs in one process, and workers that share a place."""
