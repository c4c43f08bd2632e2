"""What an MCP tool returned, as the value that a call returns: text, JSON and images."""

import json
from typing import Any

import mcp

import runner

MOST_SHOWN = 500


def value(result: Any) -> Any:
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
