from datetime import date

import pytest

from todo import files
from todo.service import Service


def test_a_list_survives_save_and_load(tmp_path):
    path = tmp_path / "list.json"
    service = Service(path)
    service.add("milk", date(2026, 12, 1))
    service.add("bread")
    service.done(2)
    service.save()
    assert [str(item) for item in Service(path).find()] == ["  1 [ ] milk (due 2026-12-01)", "  2 [x] bread"]


def test_numbers_go_on_after_a_load(tmp_path):
    path = tmp_path / "list.json"
    service = Service(path)
    service.add("milk")
    service.delete(1)
    service.save()
    assert Service(path).add("bread").number == 2


@pytest.mark.parametrize("text", ["", "[]", '{"version": 1}', "{"])
def test_a_foreign_file_is_refused(tmp_path, text):
    path = tmp_path / "list.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(files.BadFile):
        files.load(path)
