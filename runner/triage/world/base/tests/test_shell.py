import pytest

from todo.service import Service
from todo.shell import run


@pytest.fixture
def said(tmp_path):
    service, lines = Service(tmp_path / "list.json"), []

    def type_in(*commands):
        for command in commands:
            run(service, command.split(), lines.append)
        return lines

    return type_in


def test_add_and_list(said):
    assert said("add milk --due 2026-12-01", "add bread", "list") == [
        "added 1",
        "added 2",
        "  1 [ ] milk (due 2026-12-01)",
        "  2 [ ] bread",
    ]


def test_done(said):
    assert said("add milk", "done 1", "list")[1:] == ["done: milk", "  1 [x] milk"]


def test_delete(said):
    assert said("add milk", "add bread", "delete 2", "list")[2:] == ["deleted: bread", "  1 [ ] milk"]


def test_rename_and_next(said):
    assert said("add milk --due 2026-12-01", "rename 1 oat milk", "next")[1:] == [
        "renamed: oat milk",
        "  1 [ ] oat milk (due 2026-12-01)",
    ]


@pytest.mark.parametrize("command", ["fly", "done", "done x", "done 9", "add"])
def test_a_bad_command_gets_a_sentence(said, command):
    assert said(command)[-1].startswith("todo: ")
