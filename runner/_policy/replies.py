"""Replies that end no run, and conversations that the model refuses.

1. A final reply without text, or cut at the length limit, is no answer. The model reads why and is asked again, once;
   then the run stops. Reasoning alone is no text.
2. The answer of an agent with an output type is judged here: one that does not fit is refused with the reason, at most
   `output_retries` times in a row.
3. Some servers refuse on the next request what they sent themselves: ids that repeat, arguments that are no JSON, half
   an escape. The faithful copy is sent first. After it was refused for good, the conversation so far is sent rebuilt
   from its texts and calls, in every later request too; when that is refused as well, the run stops.
"""

from datetime import datetime

from replay import CallState, Event, State
from replay.events import PhaseChanged, ReplyRefused, ResultRecorded, RunStopped
from replay.messages import AssistantMessage
from runner._agent.agent import AnyAgent
from runner._agent.output import FINAL, Output
from runner._policy import request
from runner._policy.pending import Pending

EMPTY = "Your last reply had neither text nor a call of a tool. Answer with text, or call a tool."
NOT_ALONE = f"Other calls came with it. Look at their results, then call {FINAL} alone."
CUT = "Your last reply was cut at its length limit, so it is not complete. Answer again, and more briefly."


def final(agent: AnyAgent, state: State) -> list[Event]:
    """What comes after a final reply: the end, the same question once more, or a stop."""
    reason, most = "EmptyReply", 1
    why = EMPTY if not (state.answer or "").strip() else CUT if state.stop == "length" else None
    if why is None and agent.answers is not None:
        reason, most, why = "OutputInvalid", agent.output_retries, _no_output(agent.answers, state.answer or "")
    if why is None:
        return [PhaseChanged(phase="done", answer=state.answer)]
    return [ReplyRefused(why=why) if state.replies_refused < most else RunStopped(reason=reason, detail=why)]


def ends(agent: AnyAgent, state: State) -> bool:
    """Whether the run is done, or will be with its next decision."""
    over = state.phase == "model" and state.stop is not None and not state.queue and not state.framework
    return state.phase == "done" or (over and isinstance(final(agent, state)[0], PhaseChanged))


def is_output(agent: AnyAgent, call: CallState) -> bool:
    """Whether a call is the answer of an agent with an output type."""
    return agent.answers is not None and call.call.tool == FINAL


def output(call: Pending) -> ResultRecorded | RunStopped:
    """What becomes of an answer that came as a call, after every other call of its reply."""
    last, answers = call.state.messages[-1], call.agent.answers
    assert answers is not None  # it is an answer
    written = call.call.call.arguments
    why = NOT_ALONE if len(call.state.calls) > 1 else None
    if isinstance(last, AssistantMessage) and last.reply.stop == "length":
        why = CUT
    why = why or _no_output(answers, written)
    if why is None:
        return ResultRecorded(call=call.id, how="output", text=answers.dump(answers.load(written)))
    if call.state.replies_refused >= call.agent.output_retries:
        return RunStopped(reason="OutputInvalid", detail=why)
    return ResultRecorded(call=call.id, how="no_output", text=why)


def _no_output(answers: Output, text: str) -> str | None:
    """What the model is told when its answer is none; None when it is one."""
    problem = answers.problem(text)
    if problem is None:
        return None
    how = "Reply with JSON of the schema" if answers.tool is None else f"Call {FINAL}, or reply with its arguments"
    return f"Your answer is not what was asked for: {problem}. {how}, with this put right."


def refused_conversation(agent: AnyAgent, state: State, now: datetime) -> list[Event]:
    """The ask again with everything rebuilt, or a stop when nothing more can be."""
    if any(isinstance(message, AssistantMessage) for message in state.messages[state.rebuilt_upto :]):
        return [request.asked(agent, state, now, rebuilt_upto=len(state.messages))]
    return [RunStopped(reason="ConversationRefused", detail=state.failures.error)]
