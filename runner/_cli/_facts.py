"""A run as data: what `--json` prints, and what the pages for people are made from."""

from __future__ import annotations

from typing import Any

from replay import CallState, Question, State


def attempts(state: State) -> dict[str, dict[str, Any]]:
    """The last attempt of every call of the current reply that was tried."""
    return {call.call.id: _attempt(call) for call in state.calls if call.attempts}


def _attempt(call: CallState) -> dict[str, Any]:
    last = call.attempts[-1]
    result = call.result.how if call.result is not None else None
    return {
        "tool": call.call.tool,
        "key": last.key,
        "n": last.n,
        "effect": last.effect,
        "did": ("open" if last.did == "in flight" else last.did) if result is None else result,
        "open": call.open,
        "error": last.error,
        "marked": last.marked,
    }


def question(asked: Question) -> dict[str, Any]:
    """An open question with the exact arguments, which stay the text that the model wrote."""
    return {
        "id": asked.id,
        "kind": asked.kind,
        "call": asked.call,
        "tool": asked.tool,
        "arguments": asked.arguments,
        "why": asked.why,
        "at": asked.at,
    }


def run(state: State) -> dict[str, Any]:
    """Everything that `refold show --json` prints."""
    spent = state.spent
    return {
        "run": state.run,
        "task": state.task,
        "agent": state.agent,
        "phase": state.phase,
        "stopped": state.stopped.reason if state.stopped is not None else None,
        "stopped_detail": state.stopped.detail if state.stopped is not None else None,
        "final": state.stopped is not None and state.stopped.final,
        "turns": state.turns,
        "resumes": state.resumes,
        "limits": state.limits,
        "spent": {
            "input_tokens": spent.input_tokens,
            "output_tokens": spent.output_tokens,
            "dollars": spent.dollars,
            "lost_input_tokens": spent.lost_input_tokens,
            "lost_output_tokens": spent.lost_output_tokens,
            "lost_dollars": spent.lost_dollars,
            "lost_asks": spent.lost_asks,
        },
        "open": list(state.open),
        "attempts": attempts(state),
        "waiting": [question(asked) for asked in state.waiting],
        "wait": state.wait,
        "files": [{"path": file.path, "sha256": file.sha256} for file in state.hashes()],
        "workspace": state.workspace,
        "after": state.after,
        "parent": state.parent,
        "fence": list(state.fence),
        "unknown": list(state.unknown),
        "answer": state.answer if state.phase == "done" else None,
        "seq": state.seq,
        "life": state.life,
        "at": state.at,
    }
