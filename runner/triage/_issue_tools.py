"""The tools that talk to the tracker, and what its answers mean.

`runner.web` says what an answer proves: that this attempt did nothing, or nothing at all, because a request that broke
after it was sent may have been carried out. It sends the key in a header, never in what the model writes.

What a repeat does depends on the service. Filing is `keyed` only while the tracker keeps a key for longer than an
attempt can take. Otherwise it is `non_idempotent`: a tool that is called `keyed` then would file an issue twice.
"""

from __future__ import annotations

import functools
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import runner
import runner.web
from runner.triage import _tracker_process, _world
from runner.triage.errors import TrackerDown

if TYPE_CHECKING:
    import httpx

Connect = Callable[[], AbstractAsyncContextManager["httpx.AsyncClient"]]

TIMEOUT = 30.0
VISIBLE_WITHIN = 5.0
"""Seconds. The tracker commits when it has read a request, and gives up on a locked file after 3: none lands later."""


def tools(world: Path, connect: Connect | None = None) -> tuple[runner.Tool, ...]:
    """The issue tools of a world, declared by what its tracker promises with the faults that it has now.

    `connect` reaches another tracker than the world's own process.
    """
    reach = connect or functools.partial(_own, world)
    faults = _world.faults_of(world)
    keyed = not faults.ignore_keys and faults.key_ttl > TIMEOUT
    effect: Literal["keyed", "non_idempotent"] = "keyed" if keyed else "non_idempotent"
    key_ttl = timedelta(seconds=faults.key_ttl) if keyed else None

    @runner.tool(effect="reads")
    async def issue_search(text: str) -> list[dict[str, Any]]:
        """The issues that contain a text in cause, title or body: their numbers, causes and titles."""
        found = (await _ask(reach, "GET", "/issues", params={"text": text}))["issues"]
        return [{"issue": issue["id"], "cause": issue["cause"], "title": issue["title"]} for issue in found]

    declared = functools.partial(runner.Tool, effect=effect, key_ttl=key_ttl, timeout=TIMEOUT)

    @functools.partial(declared, approval=True, once_per=("cause",))
    async def issue_file(cause: str, title: str, body: str) -> dict[str, Any]:
        """File an issue for a cause, in a few words joined by dashes. One issue for each cause."""
        content = {"cause": cause, "title": title, "body": body}
        return _filed(await _ask(reach, "POST", "/issues", json=content))

    @issue_file.lookup(visible_within=VISIBLE_WITHIN)
    async def find_issue(call: runner.Call) -> runner.Found | runner.Missing:
        """Whether an issue came under this call's key. Raises when the tracker can't say: then it is asked again."""
        found = (await _ask(reach, "GET", "/issues", params={"key": call.key}))["issues"]
        return runner.Found(_filed(found[0])) if found else runner.Missing()

    @declared
    async def issue_comment(issue: int, text: str) -> dict[str, Any]:
        """Note something on an issue, by its number."""
        return _noted(await _ask(reach, "POST", f"/issues/{issue}/comments", json={"text": text}))

    @issue_comment.lookup(visible_within=VISIBLE_WITHIN)
    async def find_comment(call: runner.Call) -> runner.Found | runner.Missing:
        """Whether a comment came under this call's key; as `find_issue`."""
        path = f"/issues/{call.arguments['issue']}/comments"
        found = (await _ask(reach, "GET", path, params={"key": call.key}))["comments"]
        return runner.Found(_noted(found[0])) if found else runner.Missing()

    return issue_search, issue_file, issue_comment


def _filed(issue: dict[str, Any]) -> dict[str, Any]:
    """What the model reads: the same words whichever attempt filed it, or whether it was found."""
    return {"issue": issue["id"], "cause": issue["cause"]}


def _noted(comment: dict[str, Any]) -> dict[str, Any]:
    return {"issue": comment["issue"], "comment": comment["id"]}


async def _ask(reach: Connect, method: str, path: str, **request: Any) -> Any:
    """One request to the tracker; the answer's JSON.

    Raises `ToolFailed` when this request certainly did nothing, `OutcomeUnknown` otherwise.
    """
    async with reach() as client:
        client.event_hooks = {"request": [runner.web.key_hook]}
        with runner.web.sending():
            return runner.web.result(await client.request(method, path, **request))


@asynccontextmanager
async def _own(world: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the world's own tracker, which is started first if it is gone. Raises `ToolFailed` if it can't be.

    It never goes through a proxy, and brings no certificates: reading them takes longer than a request, and this is
    plain HTTP.
    """
    import httpx  # noqa: PLC0415 (it takes as long as all the rest, and only whoever asks needs it)

    try:
        url = await _tracker_process.url(world)
    except TrackerDown as error:
        raise runner.ToolFailed(str(error), retry_after=1.0) from error
    bare = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    async with httpx.AsyncClient(base_url=url, timeout=TIMEOUT - 2, trust_env=False, verify=bare) as client:
        yield client
