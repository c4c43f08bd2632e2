"""An agent's module that needs a package which nobody installed."""

import importlib

agent = importlib.import_module("nowhere_at_all")
