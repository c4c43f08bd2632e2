"""web: tools that speak HTTP, with httpx or httpx2, sync or async; neither is imported here.

    client = httpx.AsyncClient(base_url=..., event_hooks={"request": [runner.web.key_hook]})

    @runner.tool(effect="keyed", key_ttl=timedelta(hours=24))
    async def issue_file(title: str) -> object:
        with runner.web.sending():
            return runner.web.result(await client.post("/issues", json={"title": title}))

`key_hook` puts the call's key on what can change something; `KeyHook` is the same with another header, quoted as RFC
8941 has it, or for other methods. A second keyed request in one call goes inside `with subkey(n):`, else it is
`NeedsSubkey`. `result` says what an answer means, `sending` what an error means; together they turn whatever came back
into a result, a `ToolFailed` or an `OutcomeUnknown`. `limit_body`, as a response hook, bounds what is read; `BodyLimit`
is the same with another size. `carry` takes the call's context into threads of your own.
"""

from runner.web._body import BodyLimit, limit_body
from runner.web._classify import result, sending
from runner.web._hook import KeyHook, NeedsSubkey, carry, key_hook, subkey

__all__ = ["BodyLimit", "KeyHook", "NeedsSubkey", "carry", "key_hook", "limit_body", "result", "sending", "subkey"]
