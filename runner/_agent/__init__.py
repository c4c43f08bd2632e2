"""What a user declares: agents, tools, the call a tool sees, models, context policies. It acts never."""
