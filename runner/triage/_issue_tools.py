"""The tools that talk to the tracker, and what its answers mean.

An answer that proves that this attempt did nothing is a `ToolFailed`; anything else is unknown, because a request
that broke after it was sent may have been carried out. The key goes with every attempt as a header, never in what the
model writes (spec row 19).

What a repeat does depends on the service: a tracker told to ignore keys makes filing a `once`, and so does one that
would forget the key before a slow attempt has ended. To call it `keyed` then would be a lie that files an issue
twice.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx

import runner
from runner.triage import _manners, _tracker_start
from runner.triage.errors import TrackerDown

TIMEOUT = 30.0
LANDS_WITHIN = 5.0
"""Seconds. The tracker commits when it has read a request, and gives up on a locked file after 3: none lands later."""

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_NOT_NOW = frozenset({409, 425, 429})
_REFUSED = range(400, 500)


def tools(world: Path) -> tuple[runner.Tool, ...]:
    """The issue tools of a world, declared by what its tracker's manners promise today."""
    manners = _manners.read(world)
    keyed = not manners.ignore_keys and manners.key_ttl > TIMEOUT

    @runner.tool(effect="reads")
    async def issue_search(text: str) -> list[dict[str, Any]]:
        """The issues that contain a text in cause, title or body: their numbers, causes and titles."""
        found = (await _ask(world, "GET", "/issues", params={"text": text}))["issues"]
        return [{"issue": issue["id"], "cause": issue["cause"], "title": issue["title"]} for issue in found]

    @runner.tool(
        effect="keyed" if keyed else "once",
        remembers=timedelta(seconds=manners.key_ttl) if keyed else None,
        approval=True,
        once_per=("cause",),
        timeout=TIMEOUT,
    )
    async def issue_file(cause: str, title: str, body: str, call: runner.Call) -> dict[str, Any]:
        """File an issue for a cause, in a few words joined by dashes. One issue for each cause."""
        content = {"cause": cause, "title": title, "body": body}
        headers = {"Idempotency-Key": call.key}
        return _filed(await _ask(world, "POST", "/issues", json=content, headers=headers))

    @issue_file.lookup(lands_within=LANDS_WITHIN)
    async def find_issue(call: runner.Call) -> runner.Found | runner.Missing:
        """Whether an issue came under this call's key. Raises when the tracker can't say: then it is asked again."""
        found = (await _ask(world, "GET", "/issues", params={"key": call.key}))["issues"]
        return runner.Found(_filed(found[0])) if found else runner.Missing()

    return issue_search, issue_file


def _filed(issue: dict[str, Any]) -> dict[str, Any]:
    """What the model is told: the same words whichever attempt filed it, or whether it was found."""
    return {"issue": issue["id"], "cause": issue["cause"]}


async def _ask(world: Path, method: str, path: str, **request: Any) -> dict[str, Any]:
    """One request to the world's tracker, started first if it is gone; the answer's JSON.

    Raises `ToolFailed` when this request certainly did nothing, `Unknown` otherwise.
    """
    try:
        url = await _tracker_start.url(world)
        async with _tracker_start.client(url, timeout=TIMEOUT - 2) as client:
            response = await client.request(method, path, **request)
            if response.is_success:
                answer: dict[str, Any] = response.json()
                return answer
    except (TrackerDown, *_NEVER_SENT) as error:
        raise runner.ToolFailed(f"the tracker was not reached: {type(error).__name__}", retry_after=1.0) from error
    except (httpx.HTTPError, ValueError) as error:
        raise runner.Unknown(f"the tracker's answer was lost: {type(error).__name__}") from error
    raise meaning(response.status_code, response.headers.get("retry-after"), response.text)


def meaning(status: int, retry_after: str | None, text: str) -> runner.ToolFailed | runner.Unknown:
    """What an answer other than success says about this attempt.

    422 is unknown on purpose: another request came under this call's key, and the log does not know of it.
    """
    after = float(retry_after) if retry_after is not None and retry_after.isdigit() else None
    said = f"the tracker said {status}: {text[:200]}"
    if status in _NOT_NOW:
        return runner.ToolFailed(said, retry_after=after or 1.0)
    if status in _REFUSED and status not in (408, 422):
        return runner.ToolFailed(said)
    return runner.Unknown(said, retry_after=after)
