"""triage: the job that shows what runner is for, and an application of it that uses only its public names.

A recorded model triages the crashes of a small to-do application: it reads real code, patches it, writes and runs
real tests in a real workspace, and files one issue in a real tracker over HTTP. `Job` carries a task's newest run on,
from whatever moment its process died; `Job.check` then holds the task's catalogue of checks against the world it
left.

`Manners` say how well the tracker behaves: `manners(world)` reads them, `set_manners` keeps them, `tracker(world)` is
the address of the running tracker, which is started if it is gone. `sweep` crashes the small task of that name
everywhere, in simulation; `killed` ends it by real SIGKILL at a sample of the same points, `random_kills` the larger
jobs at random moments.
"""

from runner.triage._checks import CATALOGUE, Check, Outcome
from runner.triage._job import LIMITS, Job
from runner.triage._killed import killed
from runner.triage._manners import Manners
from runner.triage._manners import read as manners
from runner.triage._manners import write as set_manners
from runner.triage._storm import random_kills
from runner.triage._sweep import sweep
from runner.triage._task import Task
from runner.triage._task import names as tasks
from runner.triage._tracker_start import url as tracker
from runner.triage._world import World
from runner.triage.errors import NoSuchTask, NoSuchTool, TrackerDown, TriageError, WorldHeld, WrongWorld

__all__ = [
    "CATALOGUE",
    "LIMITS",
    "Check",
    "Job",
    "Manners",
    "NoSuchTask",
    "NoSuchTool",
    "Outcome",
    "Task",
    "TrackerDown",
    "TriageError",
    "World",
    "WorldHeld",
    "WrongWorld",
    "killed",
    "manners",
    "random_kills",
    "set_manners",
    "sweep",
    "tasks",
    "tracker",
]
