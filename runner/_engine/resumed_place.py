"""What a resume finds in the run's workspace: a file that holds no content of the run's own stops it."""

import eventlog
from replay import Event, State
from replay.events import RunStopped, WorkspaceAccepted, WorkspaceMoved
from runner._agent import sanitize, workspace
from runner.errors import NoWorkspace


def found(state: State, moved: str | None, accept: str | None, disk: eventlog.Disk) -> list[Event]:
    """What is written about it. `moved`: where it is now, if not there; `accept` vouches for its changed files."""
    try:
        changed = workspace.changed(moved or state.workspace, state.files, disk)
    except NoWorkspace as gone:
        return [RunStopped(reason="WorkspaceChanged", detail=str(gone))]
    by = sanitize.name(accept, "accepting the workspace") if accept is not None else ""
    events: list[Event] = []
    if moved is not None and (by or not changed):
        events.append(WorkspaceMoved(path=moved, by=by))
    if not changed:
        return events
    if by:
        return [*events, WorkspaceAccepted(by=by, files=tuple(changed))]
    return [RunStopped(reason="WorkspaceChanged", detail=workspace.names(changed))]
