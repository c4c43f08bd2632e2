"""One life under refold, its tool declared as argv says.

The words are `lookup` (non-idempotent, and can be asked), `non_idempotent`, or `idempotent`.
When the run asks a person, they look into the file and say what is true; that they were asked is printed.
"""

from __future__ import annotations

import sys

from effect import PLACE, act, happened

import eventlog
import runner
import runner.testing


def send(call: runner.Call) -> str:
    """Append a line that names the call."""
    return act(call.key)


def find(call: runner.Call) -> runner.Found | runner.Missing:
    """Look for the line."""
    return runner.Found("sent") if happened(call.key) else runner.Missing()


declared = sys.argv[3]
tool = runner.tool(effect="idempotent" if declared == "idempotent" else "non_idempotent")(send)
if declared == "lookup":
    tool.lookup(visible_within=0)(find)
agent = runner.Agent(
    name="agent", model=runner.testing.ScriptedModel([runner.testing.tool_calls(("send", {})), "sent"]), tools=[tool]
)
runs = PLACE / "runs"
run = next(iter(eventlog.store(runs).runs()), None) if runs.exists() else None
end = runner.resume_sync(run, agent, runs=runs) if run else runner.start_sync(agent, "Send it.", runs=runs)
if isinstance(end, runner.Paused):
    print("asked")
    for question in end.questions:
        done = happened(runner.key(end.state.uid, question.call))
        runner.settle(end.run, question.id, "a person", "done" if done else "rerun", found="sent", runs=runs)
    end = runner.resume_sync(end.run, agent, runs=runs)
print(end.answer if isinstance(end, runner.Finished) else end)
