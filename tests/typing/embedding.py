"""A small service that keeps runs of its own: what an embedding program looks like under `mypy --strict`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import runner
from runner.testing import ScriptedModel, tool_calls


@dataclass
class Letters:
    """The outside system."""

    sent: dict[str, str] = field(default_factory=dict[str, str])

    def tools(self) -> list[runner.Tool]:
        """The tools that reach it."""

        @runner.tool(effect="keyed", key_ttl=timedelta(days=1), approval=True)
        async def send(to: str, call: runner.Call) -> str:
            """Send a letter."""
            return self.sent.setdefault(call.key, to)

        @send.lookup
        async def was_sent(call: runner.Call) -> runner.Found | runner.Missing:
            return runner.Found(self.sent[call.key]) if call.key in self.sent else runner.Missing()

        return [send]


@dataclass
class Service:
    """Starts, answers and carries on runs."""

    runs: Path
    letters: Letters

    def agent(self) -> runner.Agent:
        """The agent of every run."""
        model = ScriptedModel([tool_calls(("send", {"to": "Ada"})), "Sent."])
        return runner.Agent(name="post", model=model, tools=self.letters.tools(), limits=runner.Limits(turns=5))

    async def ask(self, run: str, task: str) -> str:
        """Start a run, or carry on the one of this id; what to show."""
        try:
            outcome = await runner.start(self.agent(), task, runs=self.runs, run=run)
        except runner.RunExists:
            outcome = await runner.resume(run, self.agent(), runs=self.runs)
        except (runner.DiskFull, runner.Stopped) as error:
            return f"{error}. {error.hint}"
        return self.shown(outcome)

    def approve(self, run: str, who: str) -> None:
        """Answer what is open, in somebody's name."""
        for question in runner.read_state(run, self.runs).waiting:
            runner.approve(run, question.id, who, runs=self.runs)

    @staticmethod
    def shown(outcome: runner.Outcome) -> str:
        """An outcome in words."""
        match outcome:
            case runner.Finished(answer=answer):
                return answer
            case runner.Paused(questions=questions):
                return f"waiting for {', '.join(question.tool for question in questions)}"
            case runner.Waiting(until=until):
                return f"waiting until {until}"


async def main(runs: Path) -> list[str]:
    """One run, asked for twice, with an answer in between."""
    service = Service(runs, Letters())
    first = await service.ask("r1", "Write to Ada.")
    await asyncio.to_thread(service.approve, "r1", "grace")
    return [first, await service.ask("r1", "Write to Ada.")]
