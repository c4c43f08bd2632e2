"""What is really out there, whatever a log says: which calls acted, which keys a service remembers, what is under way.

It keeps its own time. A machine's clock may be set back; the services' clocks are not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from runner._agent.tools import Tool


@dataclass
class Service:
    """The ground truth. `acted` has every effect, by call, repeats included."""

    acted: dict[str, int] = field(default_factory=dict)
    _heard: dict[str, datetime] = field(default_factory=dict)
    _under_way: list[tuple[datetime, Tool, str, str]] = field(default_factory=list)

    def send(self, tool: Tool, call: str, key: str, at: datetime) -> None:
        """A request arrives: it acts, unless its key is one that the service remembers."""
        self.pass_time(at)
        self._act(tool, call, key, at)

    def send_late(self, tool: Tool, call: str, key: str, at: datetime) -> None:
        """A request is under way and arrives at `at`, long after whoever sent it gave up or died."""
        self._under_way.append((at, tool, call, key))

    def pass_time(self, to: datetime) -> None:
        """What was under way arrives, in its order."""
        due = sorted((x for x in self._under_way if x[0] <= to), key=lambda x: x[0])
        self._under_way = [x for x in self._under_way if x[0] > to]
        for at, tool, call, key in due:
            self._act(tool, call, key, at)

    def _act(self, tool: Tool, call: str, key: str, at: datetime) -> None:
        if tool.effect == "keyed" and tool.key_ttl is not None:
            known = self._heard.get(key)
            if known is not None and at <= known + timedelta(seconds=tool.key_ttl):
                return
            self._heard[key] = at
        self.acted[call] = self.acted.get(call, 0) + 1
