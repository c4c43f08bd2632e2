"""Runs for the console, and a browser without a screen that fills in its forms."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any

from starlette.testclient import TestClient

import eventlog
import runner
import runner.testing
from runner import ui
from tests.support import stage

HOST = "http://127.0.0.1"
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
SECRET = "sk-ant-api03-" + "a1B2" * 20


@runner.tool(effect="keyed", key_ttl=timedelta(hours=24), approval=True)
def pay(amount: int, to: str) -> str:
    """Pay somebody."""
    return f"paid {amount} to {to}"


@runner.tool
def launch() -> str:
    """Launch, and nobody knows whether it flew."""
    raise runner.OutcomeUnknown("the line went dead")


def paying(to: str = "ann") -> runner.Agent:
    """An agent that pays once, if it may."""
    return stage.agent([runner.testing.tool_calls(("pay", {"amount": 7, "to": to})), "Paid."], pay, name="paying")


def launching() -> runner.Agent:
    """An agent whose call is in doubt."""
    return stage.agent([runner.testing.tool_calls(("launch", {})), "It flies."], launch, name="launching")


class Person:
    """Somebody with a browser: `person` looks at pages and sends the forms that stand on them."""

    def __init__(self, runs: eventlog.Runs, who: str | None = "ann", **options: Any) -> None:
        given: dict[str, Any] = {"identify": lambda _request: who, **options}
        self.client = TestClient(ui.app(runs, **given), base_url=HOST, follow_redirects=False)
        self.origin = {"Origin": HOST, "Sec-Fetch-Site": "same-origin"}

    def see(self, path: str, status: int = 200, **headers: str) -> str:
        """A page."""
        found = self.client.get(path, headers=headers)
        assert found.status_code == status, found.text
        return found.text

    def form(self, path: str, action: str, verdict: str = "") -> dict[str, str]:
        """The hidden fields of the form on a page that does something, for one verdict."""
        for name, body in re.findall(r'<form method="post" action="([^"]+)">(.*?)</form>', self.see(path), re.DOTALL):
            if name == action and (not verdict or f'value="{verdict}"' in body):
                fields = re.findall(r'name="(\w+)" value="([^"]*)"', body)
                return {name: html.unescape(value) for name, value in fields}
        raise AssertionError(f"no form for {action} {verdict} on {path}")

    def send(self, path: str, form: dict[str, str], status: int = 303, **headers: str) -> str:
        """Send a form; the page that comes back, or where it leads."""
        found = self.client.post(path, data=form, headers={**self.origin, **headers})
        assert found.status_code == status, found.text
        return found.headers.get("location") or found.text
