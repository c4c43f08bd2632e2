"""The tests. A package, so that its modules are ours even where an installed distribution ships its own `tests`."""
