"""A real browser for the tests of the page: headless Chromium, spoken to over the WebDriver protocol.

The protocol is JSON over HTTP, and these tests need a dozen of its commands; a client library would be one more thing
to install for that.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

import pytest

SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
_TRIES = 5
MISSING = "chromium or its chromedriver is missing (apt-get install chromium chromium-driver)"


class Browser:
    """One window. `profile` is a directory of its own, which must not exist yet."""

    def __init__(self, profile: Path) -> None:
        chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        driver = shutil.which("chromedriver")
        if chromium is None or driver is None:
            if os.environ.get("CI"):
                pytest.fail(MISSING)
            pytest.skip(MISSING)
        self._driver = subprocess.Popen(
            [driver, "--port=0", "--log-level=WARNING"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._driver.stdout is not None
        port = next(
            found[1]
            for line in self._driver.stdout
            if (found := re.search(r"started successfully on port (\d+)", line))
        )
        self._at = f"http://127.0.0.1:{port}/session"
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": {"binary": chromium, "args": [*SWITCHES, f"--user-data-dir={profile}"]},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        try:
            self._at += "/" + self._send("", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        except BaseException:  # whatever kept the window from opening leaves no driver behind, and goes on up
            self._driver.kill()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._send("", method="DELETE")
        finally:
            self._driver.kill()
            self._driver.wait()
            assert self._driver.stdout is not None
            self._driver.stdout.close()

    def open(self, page: Path | str) -> None:
        """Open a file or an address, and wait until it has loaded."""
        self._send("/url", {"url": page if isinstance(page, str) else page.as_uri()})

    def run(self, script: str, *arguments: object) -> Any:
        """Run a script in the page; its answer."""
        return self._send("/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script: str, *arguments: object) -> Any:
        """Run a script in the page that calls its last argument with the answer."""
        return self._send("/execute/async", {"script": script, "args": list(arguments)})

    def click(self, selector: str) -> None:
        """Click on the first element that a selector finds, as a person would: it must be visible and uncovered.

        Where a page that lives put another one in its place meanwhile, that one is clicked on.
        """
        for again in reversed(range(_TRIES)):
            (name,) = self._send("/element", {"using": "css selector", "value": selector}).values()
            try:
                self._send(f"/element/{name}/click", {})
            except urllib.error.HTTPError as error:
                if error.code != HTTPStatus.NOT_FOUND or not again:  # a stale element reference
                    raise
            else:
                return

    def type(self, selector: str, text: str) -> None:
        """Type into an element."""
        (name,) = self._send("/element", {"using": "css selector", "value": selector}).values()
        self._send(f"/element/{name}/value", {"text": text})

    def press(self, key: str) -> None:
        """Press a key, and let it go, wherever the focus is."""
        keys = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self._send("/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": keys}]})

    def look(self, *, width: int, height: int, dark: bool = False, mobile: bool = False, paper: bool = False) -> None:
        """Look at the page through a screen of this size, by night or on paper."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        self._devtools("Emulation.setDeviceMetricsOverride", metrics)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._devtools("Emulation.setEmulatedMedia", {"media": "print" if paper else "", "features": scheme})

    def picture(self) -> bytes:
        """What is seen now, as a PNG."""
        return base64.b64decode(self._send("/screenshot"))

    def complaints(self) -> list[str]:
        """Everything the page's console was told since it was asked last, errors and warnings alike."""
        return [entry["message"] for entry in self._send("/se/log", {"type": "browser"})]

    def _devtools(self, command: str, parameters: Mapping[str, object]) -> None:
        self._send("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def _send(self, path: str, body: Mapping[str, object] | None = None, method: str = "") -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310 (our own driver, on this machine)
            self._at + path, data, {"Content-Type": "application/json"}, method=method or ("POST" if data else "GET")
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 (as above)
            return json.load(answer)["value"]
