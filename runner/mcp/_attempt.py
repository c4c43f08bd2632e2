"""One attempt of one call: the requests that the protocol makes of it, and what each answer means.

- The key goes in `_meta` beside the arguments, with the run, the call and the attempt. A server that asks for input
  ends a request, and the next one (the call's next *leg*) continues it. Each leg has the call's next sub-key, the same
  in every attempt, so that a server which remembers keys never takes one leg for another.
- `isError` is a result: the tool ran and says that it went wrong. It goes to the model as one.
- An answer that never came is unknown, and so is every protocol error that a tool may have raised after it acted.
  Certain to have done nothing are: a request whose connection was refused, one that HTTP turned away (a login, a rate,
  a session that is over), and the protocol's two errors for requests that were not processed.
"""

import asyncio
import json
from collections.abc import Collection
from contextlib import suppress
from typing import Any

import mcp
from pydantic import ValidationError

import runner
from runner import Call, NeedsPerson, OutcomeUnknown, ToolFailed
from runner._transport import NEVER_SENT, SOON, WAIT, client_error, retry_after
from runner.mcp import _transport
from runner.mcp._connection import Connection
from runner.mcp._elicitation import Elicitation
from runner.mcp._transport import ATTEMPT, CALL, KEY, RUN

MOST_SHOWN = 500


def content(result: Any) -> Any:
    """The structured content if there is any, else the text, else a list of what there is.

    An error that the tool reports is a result like any other, marked as what it is.
    """
    if result.structured_content is not None:
        pictures = [_block(block) for block in result.content if isinstance(block, mcp.types.ImageContent)]
        found: Any = [result.structured_content, *pictures] if pictures else result.structured_content
    else:
        blocks = [_block(block) for block in result.content]
        texts = [block for block in blocks if isinstance(block, str)]
        found = "\n".join(texts) if len(texts) == len(blocks) else blocks
    return {"isError": True, "content": found} if result.is_error else found


def short(found: Any) -> str:
    """A value in a few words, for a sentence about something else."""
    text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, default=str)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def _block(block: Any) -> Any:
    if isinstance(block, mcp.types.TextContent):
        return block.text
    if isinstance(block, mcp.types.ImageContent):
        return runner.Image(block.mime_type, block.data)
    shown: dict[str, Any] = block.model_dump(mode="json", by_alias=True, exclude_none=True)
    for holder in (shown, shown.get("resource", {})):
        for name in ("data", "blob"):
            if isinstance(holder.get(name), str):
                holder[name] = f"[{len(holder[name])} characters of base64]"
    return shown


MOST_LEGS = 10
BETWEEN = 0.25
"""Seconds before a leg that a server asked for without wanting an answer."""
HEADER_MISMATCH, UNSUPPORTED_VERSION = -32020, -32022


async def attempt(
    connection: Connection, tool: str, refused: Collection[int], call: Call, elicitation: Elicitation
) -> Any:
    """Run one attempt. Raises `ToolFailed`, `OutcomeUnknown` or `NeedsPerson` for what is no result.

    The server answers with the codes `refused` before it has done anything.
    """
    answers: dict[str, Any] | None = None
    state: str | None = None
    for leg in range(MOST_LEGS):
        params = mcp.types.CallToolRequestParams(
            name=tool, arguments=call.arguments, input_responses=answers, request_state=state, _meta=_meta(call, leg)
        )
        call.holding()
        result = await _sent(connection, params, refused, call, leg)
        if not isinstance(result, mcp.types.InputRequiredResult):
            found = content(result)
            if elicitation.open or elicitation.unclear:
                raise NeedsPerson(f"{elicitation.asks()} (asked to wait, it answered: {short(found)})")
            return found
        answers = elicitation.forms(result.input_requests or {})
        if elicitation.open:
            raise NeedsPerson(elicitation.asks())
        state = result.request_state
        if not answers:
            answers = None
            await asyncio.sleep(BETWEEN)
    raise OutcomeUnknown(f"the server asked for more input {MOST_LEGS} times")


def _meta(call: Call, leg: int) -> Any:
    """What goes beside the arguments of a leg; its key is the call's own, then the call's sub-keys."""
    about: dict[str, Any] = {RUN: call.run, CALL: call.id, ATTEMPT: call.n}
    return about | {KEY: call.subkey(leg) if leg else call.key} if call.acts else about


def _reporting(call: Call) -> Any:
    async def report(done: float, total: float | None, message: str | None) -> None:
        call.progress(done / total if total else None, message or "")

    return report


async def _sent(
    connection: Connection, params: mcp.types.CallToolRequestParams, codes: Collection[int], call: Call, leg: int
) -> Any:
    sent = _transport.leg_of(_meta(call, leg))
    connection.legs[sent] = None
    try:
        return await connection.call(params, _reporting(call))
    except mcp.MCPError as error:
        said, http = f"the server answered with error {error.code}: {error.message}", connection.legs[sent]
        status, after = getattr(http, "status_code", None), retry_after(getattr(http, "headers", {}))
        refused = error.code in codes or status in _transport.REFUSED
        session_over = status == _transport.NO_SESSION and not connection.modern
        anew = error.code == UNSUPPORTED_VERSION or client_error(http) in NEVER_SENT or session_over
        if error.code == HEADER_MISMATCH:
            with suppress(mcp.MCPError):
                await connection.relist()
        elif anew:
            await connection.retire()
        again = anew or error.code == HEADER_MISMATCH or status in WAIT
        if call.acts and (leg > 0 or not (refused or again)):
            raise OutcomeUnknown(said, after) from error
        raise ToolFailed(said, None if refused else after or SOON) from error
    except ValidationError as error:
        raise OutcomeUnknown(f"the server's answer does not follow the protocol: {error}") from error
    finally:
        del connection.legs[sent]
