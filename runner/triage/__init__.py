"""triage: the job that shows what runner is for. It is an application of runner's public names only.

A recorded model triages the crashes of a small to-do application: it reads real code, patches it, writes and runs
real tests in a real workspace, and files one issue in a real tracker over HTTP. `Job` carries a task's newest run on,
from whatever moment its process died. `Job.check` then compares the task's world (its workspace and its tracker) and
the log with the task's catalogue of checks.

`TrackerFaults` say how the tracker misbehaves: `tracker_faults(world)` reads them, `set_tracker_faults` keeps them.
`tracker(world)` is the address of the running tracker, which is started if it is gone. `sweep` crashes the small task
of that name at every point, in simulation; `killed` ends it by SIGKILL at a sample of the same points, `random_kills`
the larger jobs at random moments. `agent_of` is what `--agent runner.triage:agent_of` names.
"""

from runner.triage._checks import CATALOGUE, Outcome
from runner.triage._evidence import Check
from runner.triage._job import LIMITS, Job, agent_of
from runner.triage._kills import killed, random_kills, sweep
from runner.triage._task import Task
from runner.triage._task import names as tasks
from runner.triage._tracker_process import url as tracker
from runner.triage._world import TrackerFaults, World
from runner.triage._world import faults_of as tracker_faults
from runner.triage._world import set_faults as set_tracker_faults
from runner.triage.errors import NoSuchTask, NoSuchTool, TrackerDown, WorldHeld, WrongWorld

__all__ = [
    "CATALOGUE",
    "LIMITS",
    "Check",
    "Job",
    "NoSuchTask",
    "NoSuchTool",
    "Outcome",
    "Task",
    "TrackerDown",
    "TrackerFaults",
    "World",
    "WorldHeld",
    "WrongWorld",
    "agent_of",
    "killed",
    "random_kills",
    "set_tracker_faults",
    "sweep",
    "tasks",
    "tracker",
    "tracker_faults",
]
