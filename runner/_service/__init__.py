"""Many runs in one process: start or attach, leave a run to a worker, and the worker that carries on what is due."""
