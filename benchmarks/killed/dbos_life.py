"""One life under dbos: a workflow with one step, on SQLite. Launching recovers what an earlier life left pending."""

from __future__ import annotations

import logging

from dbos import DBOS, SetWorkflowID
from effect import PLACE, act


@DBOS.step()
def tool() -> str:
    """The tool is a step: its result is kept when it returns."""
    return act()


@DBOS.workflow()
def job() -> str:
    """One call of the tool."""
    return tool()


DBOS(config={"name": "killed", "system_database_url": f"sqlite:///{PLACE}/dbos.sqlite", "run_admin_server": False})
logging.getLogger("dbos").setLevel(logging.ERROR)
DBOS.launch()
if DBOS.get_workflow_status("r") is None:
    with SetWorkflowID("r"):
        DBOS.start_workflow(job)
print(DBOS.retrieve_workflow("r").get_result())
DBOS.destroy()
