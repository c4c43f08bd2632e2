"""The tools that look at the crashes and work on the code.

A patch is the one thing here that a repeat would do wrong: it declares `non_idempotent`, and its lookup reads the
workspace, because the file itself tells whether the patch is in it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

import runner
from runner.triage import _suite
from runner.triage._task import Task, files

_MOST = 100
_LONGEST = 200_000


def tools(task: Task) -> tuple[runner.Tool, ...]:
    """The code tools of a task, in the order the model sees them."""

    @runner.tool(effect="reads")
    def crash_list() -> list[dict[str, Any]]:
        """The crash groups that users reported, the most frequent first, each with its input and traceback."""
        return [msgspec.to_builtins(crash) for crash in task.crashes()]

    return crash_list, code_read, code_search, code_patch, test_write, test_run


@runner.tool(effect="reads")
def code_read(call: runner.Call, path: str = "") -> str:
    """The text of one file of the project; without a path, the names of all files."""
    if not path:
        return "\n".join(name for name, _ in files(call.workspace.root))
    return _text(call, path)


@runner.tool(effect="reads")
def code_search(text: str, call: runner.Call) -> str:
    """The lines of the project that contain a text, each as `path:line: text`."""
    found = [line for _, line in zip(range(_MOST), _lines_with(text, call.workspace.root), strict=False)]
    return "\n".join(found) if found else "no line contains it"


@runner.tool(effect="non_idempotent")
def code_patch(path: str, old: str, new: str, call: runner.Call) -> str:
    """Replace the one place in a file where `old` stands by `new`."""
    text = _text(call, path)
    count = text.count(old) if old else 0
    if count != 1 or old == new:
        raise runner.ToolFailed(f"{path} was not changed: the old text stands there {count} times, not once")
    call.workspace.write_text(path, text.replace(old, new))
    return f"{path} is patched"


@code_patch.lookup(visible_within=0)
def find_patch(call: runner.Call) -> runner.Found | runner.Missing | runner.Unsure:
    """Whether the file holds the new text or the old. A patch is made in this process: it lands with it or never."""
    path, old, new = (str(call.arguments[name]) for name in ("path", "old", "new"))
    try:
        text = _text(call, path)
    except runner.ToolFailed:
        return runner.Missing()  # a patch never removes a file, and without one it does nothing
    made, due = _stands(text, new, old), _stands(text, old, new)
    if made and not due:
        return runner.Found(f"{path} is patched")
    if due and not made:
        return runner.Missing()
    return runner.Unsure(f"{path} holds {'both texts' if made else 'neither the old text nor the new one'}")


@runner.tool(effect="idempotent")
def test_write(path: str, text: str, call: runner.Call) -> str:
    """Write a test file of the project, `tests/test_….py`, as a whole."""
    folder, _, name = path.rpartition("/")
    if folder.split("/")[0] != "tests" or not (name.startswith("test_") and name.endswith(".py")):
        raise runner.ToolFailed(f"{path} was not written: a test is tests/test_….py")
    try:
        call.workspace.write_text(path, text)
    except runner.errors.OutsideWorkspace as error:
        raise runner.ToolFailed(str(error)) from error
    return f"{path} is written"


@runner.tool(effect="idempotent", timeout=_suite.SECONDS + 10)
def test_run(call: runner.Call, path: str = "") -> dict[str, Any]:  # noqa: PT028 (a tool of this name, not a test)
    """Run the project's tests with pytest, or those of one file; what pytest printed, and whether all passed."""
    if path:
        _text(call, path)
    result: dict[str, Any] = msgspec.to_builtins(_suite.run(call.workspace.root, path))
    return result


def _text(call: runner.Call, path: str) -> str:
    """A file's text. Raises `ToolFailed` when there is none: nothing was done, and trying again would not help."""
    try:
        return call.workspace.read_text(path)
    except (OSError, UnicodeDecodeError, runner.errors.OutsideWorkspace) as error:
        why = "there is no such file" if isinstance(error, OSError) else str(error)
        raise runner.ToolFailed(f"{path} can't be read: {why}") from error


def _stands(text: str, wanted: str, other: str) -> bool:
    """Whether `wanted` stands in `text` on its own, not merely as a part of `other`."""
    return bool(wanted) and wanted in (text if other in wanted or not other else text.replace(other, ""))


def _lines_with(text: str, folder: Path) -> Iterator[str]:
    for path, place in files(folder):
        if place.stat().st_size <= _LONGEST:
            for number, line in enumerate(place.read_text(encoding="utf-8", errors="replace").split("\n"), 1):
                if text in line:
                    yield f"{path}:{number}: {line.strip()}"
