"""Who asks, and whether they may: what keeps the console safe, all of it here.

1. A request whose `Host` is none of ours is refused: a foreign name that points here reaches nothing.
2. With a token nothing is shown without it. It comes once, in a URL, and becomes a cookie by a redirect; both are
   compared in constant time, and no log and no page holds the token.
3. What changes something is a POST from a page of ours (`Origin`, `Sec-Fetch-Site`), with a word in its form that is
   made for this person, and with a name: who it is.
4. `allow(person, action, run)` is asked about everything, reading too.
5. Every answer forbids the browser to run, load, frame or keep anything but our own.
"""

import hashlib
import hmac
import inspect
import secrets
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runner._cli._render import _page

Identify = Callable[[Request], str | Awaitable[str | None] | None]
Allow = Callable[[str | None, str, str], bool]
COOKIE = "refold-session"
READING = frozenset({"read", "download"})


def readers(person: str | None, action: str, run: str) -> bool:  # noqa: ARG001 (every run is as good as another)
    """Whoever has a name may do everything, anybody else may look."""
    return person is not None or action in READING


class Guard:
    """Lets through to `app` what may pass, and says who it is in the request's state."""

    def __init__(
        self, app: ASGIApp, *, hosts: frozenset[str], identify: Identify | None, token: str | None, who: str | None
    ) -> None:
        self._app, self._hosts, self._identify, self._who = app, hosts, identify, who
        self._token = token.encode() if token is not None else None
        self._secret = secrets.token_bytes(32)
        looks = _page.looks()
        self._policy = (
            f"default-src 'none'; style-src 'self' {looks['style_digest']}; script-src 'self' "
            f"{looks['script_digest']}; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; "
            "frame-ancestors 'none'"
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        answer = await self._refusal(request)

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Content-Security-Policy"] = self._policy
                headers["Referrer-Policy"] = "same-origin"  # with `no-referrer` a form's Origin would be null
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Cache-Control"] = "no-store"
            await send(message)

        await (answer or self._app)(scope, receive, sent)

    async def _refusal(self, request: Request) -> Response | None:
        host = request.headers.get("host", "")
        if _name(host) not in self._hosts:
            return PlainTextResponse("This host is not served here.", 400)
        person = self._who
        if self._token is not None:
            given = request.query_params.get("token")
            if given is not None and hmac.compare_digest(given.encode(), self._token):
                return self._welcome(request)
            if not hmac.compare_digest(request.cookies.get(COOKIE, "").encode(), self._made("session", "").encode()):
                return PlainTextResponse("Open the address that `refold ui` printed: it holds the token.", 401)
        elif self._identify is not None:
            found = self._identify(request)
            person = await found if inspect.isawaitable(found) else found
        request.state.person, request.state.csrf = person, self._made("form", person or "")
        if request.method not in ("GET", "HEAD") and not _is_ours(request, host):
            return PlainTextResponse("This did not come from a page of the console; nothing was changed.", 403)
        return None

    def _welcome(self, request: Request) -> Response:
        """Take the token out of the address."""
        url = request.url.remove_query_params("token")
        answer = RedirectResponse(url.path + (f"?{url.query}" if url.query else ""), 303)
        path = request.scope.get("root_path") or "/"
        answer.set_cookie(COOKIE, self._made("session", ""), path=path, httponly=True, samesite="strict")
        return answer

    def _made(self, what: str, whom: str) -> str:
        return hmac.new(self._secret, f"{what}:{whom}".encode(), hashlib.sha256).hexdigest()


def _is_ours(request: Request, host: str) -> bool:
    """Whether a browser says that a page of ours sent this; a program that is no browser says nothing."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    return site in (None, "same-origin") and (origin is None or urlsplit(origin).netloc == host)


def _name(host: str) -> str:
    """A host without its port."""
    return (host if host.endswith("]") else host.rpartition(":")[0] or host).lower()
