"""`refold run`, `enqueue` and `fork`: a run is started, left to a worker, or goes on from an earlier line."""

import functools
from collections.abc import Iterator
from typing import Any

import click

import eventlog
import replay
import runner
from replay import State
from replay.events import RunForked
from runner._cli import drive, load_agent, options
from runner._cli._commands.resume import again
from runner._cli._io import ask, out
from runner._cli._io.errors import leave
from runner._cli._render import event_text
from runner._cli._render.escape import arguments, one_line

BEGINS = (
    click.argument("task", metavar="TASK"),
    load_agent.option,
    options.runs,
    click.option("--run", "name", metavar="ID", help="The run's id. Default: the agent's name and the day."),
    options.workspace(help="The directory that the agent's tools write in."),
    click.option("--inputs", metavar="JSON", help="Facts of this run, of the type that its agent declares."),
    click.option("--after", metavar="RUN", help="Continue the conversation of RUN, which is done, in a new run."),
    options.labels(help="A label of the run; may be repeated."),
)
"""What a run is begun with."""


def _begins(command: options.Command) -> options.Command:
    return functools.reduce(lambda made, option: option(made), reversed(BEGINS), command)


@click.command()
@_begins
@load_agent.model
@ask.option
@options.limits
def run(
    source: load_agent.Source,
    model: str | None,
    name: str | None,
    inputs: str | None,
    on_question: str | None,
    *,
    runs: str,
    limited: options.Limited,
    **begun: Any,
) -> None:
    """Start a run and carry it as far as it goes.

    With --run: Start the run of this id, or carry it on if it exists.

    Its answer is printed on stdout; progress, and the run's id first of all, on stderr. If the process dies, the same
    command with --run goes on, or `refold resume`.
    """
    agent = source.agent(model=model)
    agent = agent.replace(limits=limited(agent.limits))
    begin = functools.partial(runner.run, run=name) if name is not None else runner.start
    go = functools.partial(begin, agent, inputs=_given(agent, inputs), runs=runs, **begun)
    go_on = functools.partial(again, source.spec, model, runs)
    leave(drive.status(drive.carry_on(go, runs, go_on, command=on_question)))


@click.command()
@_begins
def enqueue(source: load_agent.Source, name: str | None, inputs: str | None, **begun: Any) -> None:
    """Make a run and leave it to a worker.

    Its id is printed on stdout. `refold worker` carries it on, or `refold run --run`.
    """
    agent = source.agent()
    out.out(runner.enqueue(agent, run=name, inputs=_given(agent, inputs), **begun))


def _given(agent: load_agent.AnyAgent, inputs: str | None) -> object:
    """The inputs that were typed. Raises `runner.BadAgent` and click's usage error."""
    if inputs is not None and agent.inputs is None:
        raise click.UsageError(f"agent {agent.name} declares no inputs")
    return agent.load_inputs(inputs)


@click.command()
@options.says
@click.option("--at", type=click.IntRange(min=0), required=True, metavar="SEQ", help="The line it goes on from.")
@click.option("--run", "new", metavar="NEWID", help="The new run's id.", show_default="made as for a new run")
def fork(run: str, at: int, new: str | None, runs: str, who: str) -> None:
    """Go on from an earlier line of RUN in a new run.

    RUN is stopped for good unless it is done. Anything RUN did after that line has already taken
    effect: a call that would do it again waits for a person. Messages that came after it are named here, and not
    taken over. The workspace must hold what it held at that line.
    """
    state = runner.fork(run, at=at, runs=runs, new=new, who=who)
    parent = runner.read_state(run, runs)
    (forked,) = eventlog.store(runs).read(state.run).lines[-1].events
    event = replay.decode(forked)
    unheard = event.messages if isinstance(event, RunForked) else ()
    out.rows([*_page(state, parent), *(("not heard", f"{one_line(m.who)}: {one_line(m.text)}") for m in unheard)])
    out.err(f"Carry it on with: refold resume {state.run} --agent MODULE:ATTRIBUTE --runs {options.shown(runs)}")


def _page(state: State, parent: State) -> Iterator[out.Row]:
    yield "run", state.run
    yield "forked from", f"{parent.run}, which is {event_text.phase(parent)}"
    yield "phase", event_text.phase(state)
    yield from (("in doubt", f"{call} may have happened") for call in state.in_doubt)
    for effect in state.fork_guard:
        came = f"came to {effect.text}" if effect.happened else "may have happened"
        yield "guarded", f"{effect.call} {effect.tool} {arguments(effect.arguments)} {came}"
