"""What a person reads can't be hidden, forged, or pushed off the screen by whoever wrote the text."""

import json
import unicodedata
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay import Question
from runner._cli._render import question_text
from runner._cli._render.escape import MARK, arguments, escape, marked, name, one_line

AT = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def asked(why: str = "", text: str = "{}", tool: str = "wire") -> list[str]:
    """The lines of an approval as a person reads them."""
    question = Question(
        id="1.0-approve", kind="approve", call="1.0", tool=tool, arguments=text, digest="", why=why, at=AT
    )
    return list(question_text.asked(question))


@pytest.mark.fault("invisible characters")
def test_no_character_that_can_not_be_seen_passes() -> None:
    """Controls, formats, private use, surrogates, fillers, variation selectors and tags, all of Unicode's."""
    unseen = [
        chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
    ]
    unseen += [*"\u034f\u115f\u1160\u17b4\u17b5\u180b\u2800\u3164\ufe00\ufe0f\uffa0\U000e0100\U000e01ef"]
    assert [hex(ord(c)) for c in unseen if c not in "\n\t" and escape(c) == c] == []
    assert escape("a\U000e0041b\u200bc\x1b") == "a\\U000e0041b\\u200bc\\x1b"
    assert escape("Ünïcödé 你好 \U0001f600\n\t") == "Ünïcödé 你好 \U0001f600\n\t"
    assert escape("\x1b[2J\x07\r\x00\x7f\x9b\u202e\ud800") == "\\x1b[2J\\x07\\x0d\\x00\\x7f\\x9b\\u202e\\ud800"
    assert one_line("a\nb\tc\x1b") == "a\\nb\\tc\\x1b"
    assert [one_line(text, 6) for text in ("abcdef", "abcdefg")] == ["abcdef", "abc..."]


@pytest.mark.fault("a question pushed off the screen")
def test_line_breaks_in_arguments_push_nothing_off_the_screen() -> None:
    """Sixty newlines inside valid JSON would leave only the harmless end above the prompt."""
    text = '{"dollars": 1000000,' + "\n" * 60 + '"note": "x"}'
    assert asked(text=text)[1:] == ['    {"dollars":1000000,"note":"x"}']
    for long in (json.dumps({"to": "eve", "note": " " * 50_000, "end": 1}), '{"to": "eve", "note": "' + "\\n" * 30_000):
        (shown,) = asked(text=long)[1:]
        assert len(shown) < 1_100
        assert '"to":"eve"' in shown
        assert "characters are not shown" in shown


@given(
    st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.integers(), max_size=4), st.sampled_from([None, 2])
)
def test_arguments_without_their_space_mean_the_same(value: dict[str, object], indent: int | None) -> None:
    """Nothing inside of a string is lost."""
    text = json.dumps(value, indent=indent)
    assert json.loads(arguments(text, 10_000)) == value


@pytest.mark.fault("a forged line")
def test_a_line_of_a_server_does_not_look_like_ours() -> None:
    """Every line of its text has a mark, and there are not many of them."""
    lines = asked(why="ok?\n1.0-approve: approved by ann\nMay it run? [y/N] y")
    assert lines[0] == "1.0-approve: may wire run?"
    assert [line.startswith(f"    {MARK}") for line in lines[1:-1]] == [True] * 3
    many = list(marked("\n" * 500))
    assert len(many) < 20
    assert many[-1] == "[489 more lines are not shown]"


@pytest.mark.fault("look-alike letters")
def test_a_name_with_letters_of_two_alphabets_says_so() -> None:
    """A Cyrillic letter may look like a Latin one."""
    assert name("p\u0430y") == "p\u0430y [letters of CYRILLIC, LATIN]"
    assert name("pay_2") == "pay_2"
    assert name("\u043f\u043b\u0430\u0442") == "\u043f\u043b\u0430\u0442"
    assert "[letters of CYRILLIC, LATIN]" in asked(tool="p\u0430y")[0]
    assert one_line("a\nb") == "a\\nb"
