"""OpenAI: the Responses API, and Chat Completions, which many other servers speak too.

    from runner.models import openai

    openai.Responses("gpt-6-sol")
    openai.Chat("qwen3", base_url="http://localhost:8000/v1")

`runner.Agent(parameters=...)` passes through, for example `{"reasoning": {"effort": "low"}}`.
"""

from runner.models._chat import Chat
from runner.models._responses import Responses

__all__ = ["Chat", "Responses"]
