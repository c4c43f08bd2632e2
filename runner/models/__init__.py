"""models: models of real vendors, each on the vendor's own SDK, which an extra brings and which is imported when used.

    pip install 'refold[anthropic,openai,prices]'

`runner.models.anthropic.Anthropic`, `runner.models.openai.Responses` and `runner.models.openai.Chat` (for the many
servers compatible with it) are what `runner.Agent(model=...)` takes. `named("anthropic:claude-sonnet-5-5")` makes one
from a name as the command line has it. `Price` states a model's price when no list does. Keys come from the environment
or from a client of yours, and reach no log.
"""

import importlib
from typing import Any

from runner._agent.model import Model
from runner.errors import BadAgent
from runner.models._errors import NotInstalled
from runner.models._prices import Price

_VENDORS = {
    "anthropic": ("runner.models.anthropic", "Anthropic"),
    "openai": ("runner.models.openai", "Responses"),
    "chat": ("runner.models.openai", "Chat"),
}


def named(name: str, **options: Any) -> Model:
    """The model that `VENDOR:NAME` names; the options are those of its class.

    VENDOR is `anthropic`, `openai` (Responses), or `chat`: any server that speaks Chat Completions, its address in
    `OPENAI_BASE_URL`.

    Raises `runner.BadAgent` for another vendor or no name, and `NotInstalled` without the vendor's extra.
    """
    vendor, _, model = str(name).partition(":")
    if vendor not in _VENDORS or not model:
        message = f"{name!r} names no model: write VENDOR:NAME, where VENDOR is one of {', '.join(sorted(_VENDORS))}"
        raise BadAgent(message)
    module, kind = _VENDORS[vendor]
    made: Model = getattr(importlib.import_module(module), kind)(model, **options)
    return made


__all__ = ["NotInstalled", "Price", "named"]
