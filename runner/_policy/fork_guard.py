"""The fork guard: what a fork's parent did after the line of the fork is not done again without a person's decision.

The fork's model does not know what the parent went on to do. So a call of the same tool with the same intent, or with
the same arguments where no intent is named, is not run: the parent's result is offered, and a person decides. `done`
takes the parent's result, or what the person found instead; `rerun` lets the call run, with the approval its tool asks
for, since none given in the parent after that line counts here. Until then nothing is marked, whatever rung of the
ladder would run the call. A run that continues a fork has the fork's guard. A call that the fork itself holds as in
doubt goes up the ladder first: what it sends is the key in its marker.
"""

from msgspec.structs import replace

from replay import Event
from replay.events import AttemptMarked, QuestionAsked, ResultRecorded
from replay.values import ParentEffect
from runner._agent import keys
from runner._agent.arguments import Arguments
from runner._agent.tools import Tool
from runner._policy import pending as _pending
from runner._policy.pending import Pending

SHOWN = 300
"""Characters of the parent's result that a question shows."""


def taken_over(call: Pending) -> ResultRecorded | None:
    """The result of a call that a person called done: what they found, or else what the parent's came to."""
    if not call.state.fork_guard:
        return None
    if call.state.passed(call.id, "failed") is not None and not call.call.attempts:
        return ResultRecorded(call=call.id, how="refused", text="A person said that this call is not to be made again.")
    effect = call.state.passed(call.id, "done")
    if effect is None:
        return None
    said = next(
        q.answer.text
        for q in call.state.questions.values()
        if q.call == call.id and q.guarded is not None and q.answer is not None and q.answer.answer == "done"
    )
    return ResultRecorded(call=call.id, how="stated", text=said or effect.text)


def question(call: Pending) -> QuestionAsked | None:
    """The question about a call that was never tried and repeats what the parent did."""
    found = _place(call)
    return call.question("settle", _says(call, found), found) if found is not None else None


def guarded(call: Pending, chosen: Event) -> Event:
    """What the ladder chose, unless the parent did that; a question of the ladder's then offers the parent's result."""
    found = _place(call)
    if found is None:
        return chosen
    if not call.call.in_doubt and _denies(chosen, call.state.fork_guard[found], call):
        return call.question("settle", _says(call, found), found)
    if isinstance(chosen, QuestionAsked):
        return replace(chosen, guarded=found, why=f"{chosen.why}; {_says(call, found)}")
    return chosen


def _denies(event: Event, effect: ParentEffect, call: Pending) -> bool:
    """Whether this would make the effect again, or call this very call failed although it came to something."""
    failed = isinstance(event, ResultRecorded) and event.how == "failed"
    return isinstance(event, AttemptMarked) or (failed and effect.happened and effect.call == call.id)


def _place(call: Pending) -> int | None:
    """The parent's effect that this call would repeat, by its place; None once a person let the call run.

    Of several the newest that is known to have happened, else the newest: one result is offered, and a known one first.
    """
    if not call.state.fork_guard:
        return None
    passed = call.state.passed(call.id, "rerun")
    if passed is not None and not call.edited:
        return None
    found = [index for index in repeated(call) if call.state.fork_guard[index] != passed]
    return max(found, key=lambda index: (call.state.fork_guard[index].happened, index), default=None)


def repeated(call: Pending) -> list[int]:
    """The places of the parent's effects that this call would repeat."""
    return [index for index, effect in enumerate(call.state.fork_guard) if _repeats(effect, call)]


def _repeats(effect: ParentEffect, call: Pending) -> bool:
    if effect.tool != call.call.call.tool:
        return False
    if effect.arguments == call.call.arguments:
        return True
    if effect.written and _as_written(effect.written) == _as_written(call.call.call.arguments):
        return True
    mine = _identity(call.tool, effect.tool, call.arguments)
    theirs = _identity(call.tool, effect.tool, _pending.prepare(call.tool, effect.arguments))
    return mine is not None and mine in (theirs, effect.intent)


def _as_written(raw: str) -> str:
    """Arguments as a model wrote them, by value: a default that a deploy changed since then is none of them."""
    return _identity(None, "", _pending.prepare(None, raw)) or raw


def _identity(tool: Tool | None, name: str, arguments: Arguments) -> str | None:
    """The intent of a call, or the same made of all its arguments; None when they can't be read."""
    if arguments.values is None:
        return None
    named = _pending.intent(tool, arguments) if tool is not None else None
    return named or keys.intent(name, arguments.plain, sorted(arguments.plain))


def _says(call: Pending, found: int) -> str:
    """Every call that it would repeat, and what the one at `found` came to."""
    effect = call.state.fork_guard[found]
    whose = ", ".join(f"{f.call} of {f.run}" for f in (call.state.fork_guard[i] for i in repeated(call)))
    where = f"the same call was made after the line that this run was forked at ({whose[:SHOWN]})"
    if not effect.happened:
        return f"{where} and may have happened"
    text = effect.text if len(effect.text) <= SHOWN else f"{effect.text[:SHOWN]}..."
    return f"{where} and came to: {text}"
