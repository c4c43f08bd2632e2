from datetime import date

import pytest

from todo.service import Service


@pytest.fixture
def service(tmp_path):
    return Service(tmp_path / "list.json")


def test_items_are_numbered_from_one(service):
    assert [service.add(text).number for text in ("milk", "bread")] == [1, 2]


def test_an_empty_text_is_refused(service):
    with pytest.raises(ValueError, match="needs a text"):
        service.add("   ")


def test_find_ignores_case(service):
    service.add("Buy milk")
    service.add("call home")
    assert [item.text for item in service.find("MILK")] == ["Buy milk"]


def test_the_next_item_is_the_one_due_first(service):
    service.add("later", date(2026, 12, 24))
    service.add("sooner", date(2026, 12, 1))
    assert service.next_due().text == "sooner"


def test_nothing_is_next_when_all_is_done(service):
    service.done(service.add("milk").number)
    assert service.next_due() is None
