"""What is put to the test: the user's factories, the task, and the count of what happened in the world."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import runner


@dataclass(frozen=True)
class Subject:
    """What every life of every scenario is made of."""

    world: Callable[[Path], Any]
    agent: Callable[[Any], runner.Agent]
    task: str
    effects: Callable[[Any], Mapping[str, int]]

    def happened(self, world: Any) -> dict[str, int]:
        """How often each effect has happened by now."""
        return {name: number for name, number in self.effects(world).items() if number}
