"""The tests. A package, so that `tests.house` is ours even where an installed distribution ships its own `tests`."""
