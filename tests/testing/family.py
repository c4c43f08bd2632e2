"""An office with two clerks, who are child runs side by side: one needs a person's yes, the other posts at once."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import runner
from runner import Found, Missing
from runner.testing import ScriptedModel, tool_calls

TASK = "Send both letters."


class Post:
    """A post office that knows the keys of its letters."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._letters: dict[str, str] = {}

    def letters(self) -> dict[str, str]:
        """Every letter that was sent, by its key."""
        return self._letters

    def keep(self, key: str, text: str) -> None:
        """Take a letter."""
        self._letters[key] = text

    def send(self, key: str, text: str) -> str:
        """Send a letter, once for each key."""
        if key not in self.letters():
            self.keep(key, text)
        return f"sent {text}"

    def counts(self) -> dict[str, int]:
        """How often each text was sent."""
        return dict(Counter(self.letters().values()))


class Posted(Post):
    """The same on the disk, for processes that die: a file for each letter, whole or not there."""

    def letters(self) -> dict[str, str]:
        """Every letter that was sent."""
        return {path.name.removeprefix("letter-"): path.read_text() for path in self.folder.glob("letter-*")}

    def keep(self, key: str, text: str) -> None:
        """Take a letter."""
        draft = self.folder / f"draft-{key}"
        draft.write_text(text)
        draft.rename(self.folder / f"letter-{key}")


def clerk(post: Post, name: str, *, approval: bool, turns: Callable[[str], Any]) -> runner.Agent:
    """An agent that sends the letter that it is told to."""

    @runner.tool(effect="keyed", key_ttl=timedelta(hours=1), approval=approval, name=f"send_{name}", timeout=4)
    def send(text: str, call: runner.Call) -> str:
        """Send a letter."""
        return post.send(call.key, text)

    @send.lookup(visible_within=0)
    def find(call: runner.Call) -> Found | Missing:
        text = post.letters().get(call.key)
        return Found(f"sent {text}") if text is not None else Missing()

    return runner.Agent(name=name, model=ScriptedModel(turns(f"send_{name}")), tools=[send])


def office(post: Post) -> runner.Agent:
    """The parent, whose model gives each clerk a letter in one reply."""

    def once(tool: str) -> list[Any]:
        return [lambda request: tool_calls((tool, {"text": request.messages[0].text})), "Posted."]

    clerks = [
        clerk(post, "ann", approval=True, turns=once),
        clerk(post, "bob", approval=False, turns=once),
    ]
    both = tool_calls(*((one.name, {"task": f"to {one.name}"}) for one in clerks))
    return runner.Agent(
        name="office",
        model=ScriptedModel([both, "Both are posted."]),
        tools=[runner.as_tool(one) for one in clerks],
        limits=runner.Limits(turns=20, dollars=1.0),
    )
