"""A run as data: what `--json` prints, and what the pages for people are made from."""

from typing import Any

from replay import Question, State


def attempts(state: State) -> dict[str, dict[str, Any]]:
    """The last attempt of every call of the current reply that was tried."""
    found = {}
    for call in state.calls:
        if call.attempts:
            last = call.attempts[-1]
            did = "in doubt" if last.did == "in flight" else last.did
            found[call.call.id] = {
                "tool": call.call.tool,
                **fields(last, "key n effect"),
                "did": did if call.result is None else call.result.how,
                "in_doubt": call.in_doubt,
                **fields(last, "error marked"),
            }
    return found


def fields(value: object, names: str) -> dict[str, Any]:
    """These fields of a value, by their names."""
    return {name: getattr(value, name) for name in names.split()}


def question(asked: Question) -> dict[str, Any]:
    """An open question with the exact arguments, which stay the text that the model wrote."""
    return fields(asked, "id kind call tool arguments why at")


def rules(state: State) -> list[dict[str, Any]]:
    """The standing yeses; `holds`: the tool is declared as it was then."""
    return [
        {**fields(rule, "tool arguments who"), "holds": rule.declared == state.declared(rule.tool)}
        for rule in state.rules
    ]


def run(state: State) -> dict[str, Any]:
    """Everything that `refold show --json` prints."""
    stopped = state.stopped
    return {
        **fields(state, "run uid task inputs agent phase"),
        "stopped": None if stopped is None else stopped.reason,
        "stopped_detail": None if stopped is None else stopped.detail,
        "final": stopped is not None and stopped.final,
        **fields(state, "turns resumes limits"),
        "spent": fields(
            state.spent,
            "input_tokens output_tokens dollars lost_input_tokens lost_output_tokens lost_dollars lost_asks",
        ),
        "in_doubt": list(state.in_doubt),
        "attempts": attempts(state),
        "children": {call.call.id: call.child.run for call in state.calls if call.child is not None},
        "waiting": [question(asked) for asked in state.waiting],
        "wait": state.wait,
        "messages": [fields(one, "id who text") for one in state.queue],
        "rules": rules(state),
        "files": [fields(file, "path sha256") for file in state.hashes()],
        **fields(state, "workspace after parent parent_call fork_guard unknown"),
        "answer": state.answer if state.phase == "done" else None,
        **fields(state, "seq life at"),
    }
