"""`refold preflight`: before a deploy, whether the current code can carry on every unfinished run."""

from collections import Counter
from collections.abc import Callable

import click

import runner
from replay import State
from runner._cli import load_agent, options
from runner._cli._io import out
from runner._cli._io.errors import Status, leave


@click.command()
@click.option(
    "--agent",
    "sources",
    metavar="MODULE:ATTRIBUTE",
    multiple=True,
    required=True,
    callback=lambda _ctx, _param, specs: [load_agent.load(spec) for spec in specs],
    help="Your agent: a runner.Agent, or a function that makes one. Repeat it for several agents.",
)
@options.runs
@options.json
def preflight(sources: list[load_agent.Source], runs: str, *, as_json: bool) -> None:
    """Say whether the code can carry on unfinished runs.

    Looks at every unfinished run. What stands in the way: no agent of its name, a tool that is gone, an effect, an
    approval, a lookup or arguments that changed under a call, a limit that is reached, events of a later version, a
    changed workspace, a damaged log. Exit status 1 if any run can't be carried on.
    """
    found = runner.review.preflight(options.existing(runs), _agent_of(sources))
    if as_json:
        out.as_json([_facts(each) for each in found])
    elif found:
        out.table(("RUN", "PHASE", "VERDICT", "WHAT"), [row for each in found for row in _rows(each)])
    else:
        out.err(f"No unfinished runs in {options.shown(runs)}: nothing was checked.")
    if not all(each.able for each in found):
        leave(Status.FAILED)


def _agent_of(sources: list[load_agent.Source]) -> Callable[[State], load_agent.AnyAgent | None]:
    """The current agent of a run, by its name."""
    fixed = [source.agent() for source in sources if not source.takes_state()]
    twice = [name for name, count in Counter(agent.name for agent in fixed).items() if count > 1]
    if twice:
        raise click.UsageError(f"two agents are named {twice[0]}")

    def agent_of(state: State) -> load_agent.AnyAgent | None:
        made = [source.agent_of(state) for source in sources if source.takes_state()]
        found = [agent for agent in (*fixed, *made) if agent is not None and agent.name == state.agent]
        if len(found) > 1:
            raise runner.BadAgent(f"two agents are named {state.agent}")
        return found[0] if found else None

    return agent_of


def _facts(found: runner.review.Preflight) -> dict[str, object]:
    return {
        "run": found.run,
        "agent": found.agent,
        "phase": found.phase,
        "seq": found.seq,
        "able": found.able,
        "issues": found.issues,
    }


def _rows(found: runner.review.Preflight) -> list[tuple[str, str, str, str]]:
    """One row for the run, with what was found below each other."""
    verdict = "goes on" if found.able else "can't go on"
    ordered = sorted(found.issues, key=lambda issue: not issue.blocks)
    said = [f"{issue.kind}: {issue.says}" for issue in ordered] or [""]
    first = (found.run, found.phase, verdict, said[0])
    return [first, *(("", "", "", each) for each in said[1:])]
