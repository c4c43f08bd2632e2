import pytest

from todo.item import Item
from todo.store import NoSuchItem, Store


def three() -> Store:
    return Store(Item(number, text) for number, text in enumerate(["milk", "bread", "tea"], 1))


def test_an_item_is_found_by_its_number():
    assert three().get(2).text == "bread"


def test_done_marks_the_item():
    store = three()
    store.mark_done(2)
    assert [item.done for item in store] == [False, True, False]


def test_delete_removes_the_item():
    store = three()
    assert store.delete(2).text == "bread"
    assert [item.number for item in store] == [1, 3]


def test_a_deleted_item_is_gone():
    store = three()
    store.delete(3)
    with pytest.raises(NoSuchItem, match="there is no item 3"):
        store.mark_done(3)


def test_a_number_is_never_used_again():
    store = three()
    store.delete(3)
    assert store.last == 3


def test_rename():
    store = three()
    store.rename(1, "oat milk")
    assert store.get(1).text == "oat milk"
