"""The console: all runs of a place as live pages, with what a person may say to them. It needs the extra `ui`.

`refold ui` serves it on this machine; `app` is the same as an ASGI application of your own program's. What keeps it
safe stands at the top of `_guard`, what a form does in `_actions`.
"""

from runner.ui._app import app

__all__ = ["app"]
