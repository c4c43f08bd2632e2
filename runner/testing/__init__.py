"""testing: models for tests, and sweeps that crash an agent at every point of a run.

`ScriptedModel` gives the replies of a list, `RecordedModel` those that a `RecordingModel` wrote to a file.

`sweep` runs your agent once to find every point where a crash can happen, then from scratch for each point, resumes it,
crashes it again, and counts what it did to outside systems:

    report = testing.sweep(environment=Bank, agent=teller, task="Pay the rent.", effects=Bank.counts)
    assert not report.failures, report

`kill_sweep` does the same with real processes and SIGKILL, `random_kills` at random moments. In pytest the fixture
`crash_sweep` is `sweep` with the assertion. The simulated disk is `eventlog.simdisk`.
"""

from runner.testing._around import between
from runner.testing._inputs import NoSuchScenario, NothingToCount, NotRepeatable, Reword, Without
from runner.testing._modes import MODES, Mode
from runner.testing._real_kill import kill_sweep, random_kills
from runner.testing._recorded import BadRecording, RecordedModel, RecordingModel
from runner.testing._report import Row, SweepReport, table
from runner.testing._scripted import ScriptedModel, tool_calls
from runner.testing._sweep import Progress, WorkerFailed, reword_reply, sweep
from runner.testing._verdict import Scenario

__all__ = [
    "MODES",
    "BadRecording",
    "Mode",
    "NoSuchScenario",
    "NotRepeatable",
    "NothingToCount",
    "Progress",
    "RecordedModel",
    "RecordingModel",
    "Reword",
    "Row",
    "Scenario",
    "ScriptedModel",
    "SweepReport",
    "Without",
    "WorkerFailed",
    "between",
    "kill_sweep",
    "random_kills",
    "reword_reply",
    "sweep",
    "table",
    "tool_calls",
]
