"""The console's pages and forms. Each handler asks whether this person may, reads or acts in a thread, and shows."""

import asyncio
import contextlib
import functools
import hmac
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import click
import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import eventlog
import replay
import runner
from runner._agent.agent import AnyAgent
from runner._cli._render import _page, as_json
from runner._cli._render._page._texts import Texts
from runner.ui import _actions, _listing, _live
from runner.ui._guard import Allow, Guard, Identify, readers

HERE = Path(__file__).parent / "pages"
LOCAL = ("127.0.0.1", "localhost", "[::1]")
MOST = 1 << 20
"""Bytes of a form."""


def app(
    runs: eventlog.Runs,
    *,
    identify: Identify | None = None,
    allow: Allow = readers,
    agents: Sequence[AnyAgent] = (),
    hosts: Iterable[str] = LOCAL,
    token: str | None = None,
    who: str | None = None,
) -> Starlette:
    """The console as an ASGI application, to be served or mounted in another one.

    Args:
        runs: Where the runs are, as for `runner.start`.
        identify: Says who sent a request, or None for somebody without a name; it may be async.
        allow: Whether a person may do something with a run: `read`, `download`, `answer`, `park`, `resume`, `stop`,
            `send` or `fork`. By default whoever has a name may do all of it, and anybody else may look.
        agents: The agents whose runs a person can resume here, while a host runs the application's lifespan; elsewhere
            the page names the command.
        hosts: The names by which it may be reached.
        token: What everybody must know who looks at all, as `refold ui` has it.
        who: The name of whoever comes with the token.
    """
    console = _Console(eventlog.store(runs), allow, {agent.name: agent for agent in agents})
    guard = Middleware(
        Guard, hosts=frozenset(hosts), identify=identify, token=token, who=who if token is not None else None
    )
    routes = [
        Route("/", console.runs),
        Route("/inbox", console.inbox),
        Route("/runs/{run}", console.run),
        Route("/runs/{run}/events", console.events),
        Route("/runs/{run}/state", console.state),
        Route("/runs/{run}/fork", console.preview),
        Route("/runs/{run}/log", console.log),
        Route("/runs/{run}/report", console.report),
        Route("/runs/{run}/{action}", console.act, methods=["POST"]),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]
    ours = (runner.RunError, eventlog.LogError, replay.ReplayError, _actions.NotDone)
    errors: dict[Any, Any] = dict.fromkeys((*ours, HTTPException, ValueError, KeyError, click.UsageError), _failed)
    return Starlette(routes=routes, middleware=[guard], exception_handlers=errors, lifespan=console.lifespan)


class _Console:
    """The handlers, and what they share."""

    def __init__(self, store: eventlog.Store, allow: Allow, agents: dict[str, AnyAgent]) -> None:
        self._store, self._allow, self._agents = store, allow, agents
        self._listing = _listing.Listing(store)
        self._pages = functools.lru_cache(_live.KEPT)(functools.partial(_live.Pages, store))
        self._followers = _live.Followers(store)
        self._resumed: set[asyncio.Task[Any]] = set()
        self._is_waited_for = False

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """The server's; what was resumed here comes to its rest before it ends."""
        self._is_waited_for = True
        yield
        self._is_waited_for = False
        while self._resumed:
            await asyncio.wait(self._resumed)

    def _may(self, request: Request, action: str, run: str) -> bool:
        return self._allow(request.state.person, action, run)

    def _checked(self, request: Request, action: str) -> str:
        """The run of a request, which this person may do that with."""
        run: str = request.path_params["run"]
        if not self._may(request, action, run):
            raise HTTPException(403, f"{request.state.person or 'Nobody'} may not {action} {run}.")
        return run

    async def runs(self, request: Request) -> Response:
        found = [info for info in await self._listing.all() if self._may(request, "read", info.run)]
        page = _listing.page(found, request.query_params)
        return _shown(request, "runs.html", page=page, asked=request.query_params)

    async def inbox(self, request: Request) -> Response:
        found = [one for one in await self._listing.questions() if self._may(request, "read", one[0].run)]
        answers = {state.run for state, _ in found if self._may(request, "answer", state.run)}
        return _shown(request, "inbox.html", found=found, answers=answers)

    async def run(self, request: Request) -> Response:
        """One run: its report, and above it what happens now and what may be said to it."""
        run = self._checked(request, "read")
        may = {name for name in (*_actions.FORMS, "resume", "download") if self._may(request, name, run)}
        near = request.query_params.get("near", "")
        facts = _facts(request)
        key = facts["base"], facts["csrf"], frozenset(may), near

        def make(audited: runner.review.Audited) -> str:
            return _page.render(
                audited,
                runner.review.SECRET_PATTERNS,
                _templates().get_template("run.html"),
                near,
                state=audited.state,
                holder=self._store.holder(run),
                forks=self._listing.forks(run),
                may=may,
                answers={run} if "answer" in may else set(),
                here=self._is_waited_for and audited.state.agent in self._agents,
                **facts,
            )

        again = "refold-again" in request.headers
        page = await asyncio.to_thread(self._pages(run).made, key, make, again=again)
        return Response(page, media_type="text/html")

    async def events(self, request: Request) -> Response:
        """What happens in a run from a line on."""
        run = self._checked(request, "read")
        after = request.headers.get("last-event-id") or request.query_params.get("after", "-1")
        return StreamingResponse(self._followers.events(run, int(after)), media_type="text/event-stream")

    async def state(self, request: Request) -> Response:
        run, at = self._checked(request, "read"), int(request.query_params["at"])

        def told() -> str:
            lines = [line for line in self._store.read(run).lines if line.seq <= at]
            if not lines or lines[-1].seq != at:
                raise HTTPException(404, f"{run} has no line {at}.")
            state = replay.load(lines)
            return json.dumps(msgspec.to_builtins(as_json.run(state)), indent=2, ensure_ascii=False)

        return _shown(request, "state.html", run=run, at=at, text=await asyncio.to_thread(told))

    async def preview(self, request: Request) -> Response:
        """What a fork from a line would not repeat."""
        run, at = self._checked(request, "fork"), int(request.query_params["at"])
        forked = await asyncio.to_thread(runner.fork, run, at=at, runs=self._store, dry=True)
        state = await asyncio.to_thread(runner.read_state, run, self._store)
        return _shown(request, "fork.html", run=run, at=at, state=state, forked=forked)

    async def log(self, request: Request) -> Response:
        run = self._checked(request, "download")
        reading = await asyncio.to_thread(self._store.read, run)
        return StreamingResponse(self._store.raw(reading), media_type="application/jsonl", headers=_as(f"{run}.jsonl"))

    async def report(self, request: Request) -> Response:
        """The report, as `refold report` makes it."""
        run = self._checked(request, "download")
        audited = await asyncio.to_thread(runner.review.audit, run, self._store)
        page = await asyncio.to_thread(_page.render, audited, runner.review.SECRET_PATTERNS)
        return Response(page, media_type="text/html", headers=_as(f"{run}.html"))

    async def act(self, request: Request) -> Response:
        action: str = request.path_params["action"]
        run, person, form = self._checked(request, action), request.state.person, await _form(request)
        if not hmac.compare_digest(form.get("csrf", "").encode(), request.state.csrf.encode()):
            raise HTTPException(403, "The form is not of this console, or of another visit; nothing was changed.")
        if person is None:
            raise HTTPException(403, "Somebody without a name can't change anything.")
        made: object = None
        if action == "resume":
            await self._resume(run)
        elif action in _actions.FORMS:
            made = await asyncio.to_thread(_actions.FORMS[action], self._store, run, person, form)
        else:
            raise HTTPException(404, f"A run can't be {action!r}.")
        self._listing.stale()
        back = "/inbox" if form.get("back") == "inbox" else f"/runs/{made if action == 'fork' else run}"
        return RedirectResponse(f"{request.scope.get('root_path', '')}{back}", 303)

    async def _resume(self, run: str) -> None:
        """Carry a run on here, to where it rests."""
        state = await asyncio.to_thread(runner.read_state, run, self._store)
        agent = self._agents.get(state.agent)
        if agent is None:
            raise _actions.NotDone(f"No agent {state.agent} is here; resume it with: refold resume {run} --agent ...")
        if not self._is_waited_for:
            raise _actions.NotDone(
                "The host does not run this console's lifespan, and would cut the run off as it ends."
            )

        async def carried() -> None:
            try:
                await runner.resume(run, agent, runs=self._store)
            except (runner.RunError, eventlog.LogError):
                return  # the page shows where it stands

        task = asyncio.create_task(carried())
        self._resumed.add(task)
        task.add_done_callback(self._resumed.discard)


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form. Raises 413 for one that is too long."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST:
            raise HTTPException(413, "The form is too long; nothing was changed.")
    return dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True, max_num_fields=100))


@functools.cache
def _templates() -> Any:
    made = _page.environment(HERE)
    made.globals.update(rung=_listing.rung, word=_listing.word)
    return made


def _facts(request: Request) -> dict[str, Any]:
    """What every page knows of who looks at it."""
    return {"base": request.scope.get("root_path", ""), "csrf": request.state.csrf, "person": request.state.person}


def _shown(request: Request, name: str, status: int = 200, **more: Any) -> Response:
    texts = Texts(runner.review.SECRET_PATTERNS, ())
    page = _templates().get_template(name).render(**_facts(request), texts=texts, **more)
    return Response(page, status, media_type="text/html")


async def _failed(request: Request, error: Exception) -> Response:
    """What was not done, and why."""
    status = error.status_code if isinstance(error, HTTPException) else 409
    status = 400 if isinstance(error, ValueError | KeyError | click.UsageError) else status
    status = 404 if isinstance(error, eventlog.NoSuchRun | eventlog.BadRunId) else status
    why = error.detail if isinstance(error, HTTPException) else str(error)
    more = {"why": why, "hint": getattr(error, "hint", ""), "since": getattr(error, "since", [])}
    return _shown(request, "failed.html", status, **more, run=request.path_params.get("run"))


def _as(name: str) -> dict[str, str]:
    """What has a browser keep an answer as a file."""
    return {"Content-Disposition": f'attachment; filename="{name}"'}
