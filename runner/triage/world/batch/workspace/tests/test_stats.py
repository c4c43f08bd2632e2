from todo.item import Item
from todo.stats import summary


def test_how_much_is_done():
    items = [Item(1, "milk", done=True), Item(2, "bread"), Item(3, "tea")]
    assert summary(items) == "1 of 3 done (33 %)"


def test_all_of_it():
    assert summary([Item(1, "milk", done=True)]) == "1 of 1 done (100 %)"
