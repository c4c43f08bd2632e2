"""Programs with a loop of their own: a framework's agent, or plain Python, durable on a run's log.

`seam` is what they call, `pump` carries the run on, `cursor` hands back what is recorded, `program` is the agent of
such runs, and `opening` the block that begins one. `runner/adapters.py` offers it to adapters.
"""
