"""What a run comes to, and the questions it leaves to a person: answered from any process, once.

The first answer counts. An answer is an event with who and when and the digest of the arguments that were shown, and
covers only those. `approve`, `refuse`, `edit` and `respond` answer approvals, `settle` answers the ladder.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Generic, NoReturn, Self, TypeAlias

import msgspec

import replay
from replay import Question, State
from replay.events import QuestionAnswered, RuleAdded
from replay.values import FITS, Verdict
from runner import errors
from runner._agent import json_text, sanitize
from runner._agent.agent import AnyAgent
from runner._agent.generics import Defaults, TypeVar

Output = TypeVar("Output", default=str)
Output_co = TypeVar("Output_co", covariant=True, default=str)


class WithState(msgspec.Struct, frozen=True):
    """What holds a run's state, which its `repr` leaves out."""

    def __repr__(self) -> str:
        told = (f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__ if name != "state")
        return f"{type(self).__name__}({', '.join(told)})"


class Finished(WithState, Defaults, Generic[Output_co], frozen=True):
    """An outcome: the run is done. Its output, the text of its answer, its id, and its state.

    Without an output type the output is the text.
    """

    output: Output_co
    answer: str
    run: str
    state: State

    def finished(self) -> Self:
        """The outcome itself."""
        return self


class Paused(WithState, frozen=True):
    """An outcome: a person must answer these questions. The lock is free and the process may exit."""

    questions: tuple[Question, ...]
    run: str
    state: State

    def finished(self) -> NoReturn:
        """Raises `NeedsDecision`: a person must answer first."""
        raise errors.NeedsDecision(self.run, tuple(question.id for question in self.questions))


class Waiting(WithState, frozen=True):
    """An outcome: nothing is to be done before `until` (UTC). The lock is free; resume the run then."""

    until: datetime
    run: str
    state: State

    def finished(self) -> NoReturn:
        """Raises `StillWaiting`: it is not done yet."""
        raise errors.StillWaiting(self.run, self.until)


Outcome: TypeAlias = Finished[Output] | Paused | Waiting
"""What a run came to. `outcome.finished()` is the `Finished` one, or raises what says why it is not."""


def finished(agent: AnyAgent, state: State) -> Finished[Any]:
    """The outcome of a run that is done. Raises `BadAgent` when its answer is none of the agent's."""
    return Finished(agent.load_output(state.answer or ""), state.answer or "", state.run, state)


class Answer(msgspec.Struct, frozen=True):
    """What `on_question` returns. `verdict` fits the question's kind; `text` is a reason, or what was found.

    `arguments` belong to `edit`. `always`: with `approve`, the same yes holds in this run for every call of this tool
    that has these values of arguments.
    """

    verdict: Verdict
    who: str
    text: str = ""
    arguments: Mapping[str, Any] | None = None
    always: Mapping[str, Any] | None = None


OnQuestion = Callable[[Question], Answer | Awaitable[Answer | None] | None]


def answered(state: State, question: str, verdict: Verdict, who: str, text: str) -> QuestionAnswered:
    """The event of an answer; the text of an `edit` is the JSON of its arguments.

    Raises `NoSuchQuestion`, `AlreadyAnswered`, `WrongAnswer`, `UnusableAnswer`, `NoName`.
    """
    asked = state.questions.get(question)
    if asked is None:
        raise errors.NoSuchQuestion(state.run, question)
    if not isinstance(text, str):
        raise errors.UnusableAnswer(state.run, question, f"what it says is {text!r:.60}, not text")
    if asked.answer is not None:
        raise errors.AlreadyAnswered(state.run, question, asked.answer.who, asked.answer.answer)
    if verdict not in FITS[asked.kind]:
        raise errors.WrongAnswer(state.run, question, asked.kind, verdict)
    if verdict == "rerun" and errors.NeedsPerson.FORM.match(asked.why) and text.strip() != "decline":
        _check_form(state.run, question, text)
    arguments = None
    if verdict == "edit":
        _check_form(state.run, question, text)
        arguments, text = sanitize.clean(text), ""
    if verdict == "respond" and not text:
        raise errors.UnusableAnswer(state.run, question, "it has no text")
    return QuestionAnswered(
        id=question,
        answer=verdict,
        who=sanitize.name(who, f"an answer to {question} of {state.run}"),
        digest=asked.digest,
        text=sanitize.clean(text),
        arguments=arguments,
        new_digest="" if arguments is None else replay.digest(arguments.encode()),
    )


def events(state: State, question: Question, answer: Answer) -> list[QuestionAnswered | RuleAdded]:
    """What an answer of the hook's comes to. Raises as `answered` and `rule` do."""
    text = json.dumps(answer.arguments, default=str) if answer.verdict == "edit" else answer.text
    always = answer.always if answer.verdict == "approve" else None
    found: list[QuestionAnswered | RuleAdded] = [answered(state, question.id, answer.verdict, answer.who, text)]
    return found if always is None else [*found, rule(state, question.tool, always, answer.who)]


def rule(state: State, tool: str, arguments: Mapping[str, Any], who: str) -> RuleAdded:
    """The event of a standing yes. Raises `NoName`, and `BadRule` for values that are no JSON."""
    if not isinstance(tool, str):
        raise errors.BadRule(state.run, f"its tool is {tool!r:.60}, not a name")
    try:
        values = {
            str(name): json.dumps(value, ensure_ascii=False, allow_nan=False) for name, value in dict(arguments).items()
        }
    except (TypeError, ValueError) as error:
        raise errors.BadRule(state.run, str(error)) from None
    return RuleAdded(tool=tool, arguments=values, who=sanitize.name(who, f"a rule of {state.run}"))


def _check_form(run: str, question: str, text: str) -> None:
    try:
        given = json_text.read(text)
    except json_text.InvalidArguments as invalid:
        raise errors.UnusableAnswer(run, question, str(invalid).replace("they are", "it is", 1)) from None
    if not isinstance(given, dict):
        raise errors.UnusableAnswer(run, question, "it is no JSON object")
