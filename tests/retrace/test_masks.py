"""Masks: what looks like a secret is hidden, and what does not is left as it was."""

from __future__ import annotations

import re

import pytest

import runner

HIDDEN = [
    ("sk-ant-api03-abcdefghijklmnopqrstuv", "[secret]"),
    ("key sk-proj-AbCdEfGhIjKlMnOpQrStUv.", "key [secret]."),
    ("sk_live_abcdefghijklmnop1234", "[secret]"),
    ("ghp_abcdefghijklmnopqrstuvwxyz012345", "[secret]"),
    ("github_pat_abcdefghijklmnopqrstuv_12345", "[secret]"),
    ("glpat-abcdefghijklmnopqrst", "[secret]"),
    ("xoxb-123456789012-abcdef", "[secret]"),
    ("AKIAIOSFODNN7EXAMPLE", "[secret]"),
    ("AIzaabcdefghijklmnopqrstuvwxyz0123456", "[secret]"),
    ("Authorization: Bearer abc.def-ghi_jklmn", "Authorization: Bearer [secret]"),
    ("eyJhbGciOiJI.eyJzdWIiOiIx.abc_def", "[secret]"),
    ("postgres://ann:pass-word@db/x", "postgres://ann:[secret]@db/x"),
    ("password=hunter22 next", "password=[secret] next"),
    ("DB_PASSWORD: hunter22", "DB_PASSWORD: [secret]"),
    ('{"client_secret": "abcd1234", "x": 1}', '{"client_secret": "[secret]", "x": 1}'),
    (r"{\"api_key\": \"abcd1234\"}", r"{\"api_key\": \"[secret]\"}"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nafter", "[secret]\nafter"),
    ("-----BEGIN PRIVATE KEY-----\ncut off", "[secret]"),
]

LEFT = [
    "12,345 tokens: 100 input",
    "the secret of it all is patience",
    "password: str",
    "risk-assessment-of-the-something-longer",
    "e68c5841d9b5898ee0da8d0bf8a9b886",
    "https://example.org:8080/a@b",
    "",
]


@pytest.mark.parametrize(("text", "shown"), HIDDEN)
def test_what_looks_like_a_secret_is_masked_and_its_name_stays(text: str, shown: str) -> None:
    """A reader sees what was there, and not what it was; masking twice changes nothing more."""
    assert runner.masked(text) == shown
    assert runner.masked(shown) == shown


@pytest.mark.parametrize("text", LEFT)
def test_what_looks_like_no_secret_is_left_alone(text: str) -> None:
    """A page full of masks tells nothing."""
    assert runner.masked(text) == text


def test_patterns_of_the_user_mask_what_no_shape_gives_away() -> None:
    """A customer's number looks like any other."""
    patterns = (*runner.SECRETS, re.compile(r"customer \d+"))
    assert runner.masked("customer 7788 said password=hunter22", patterns) == "[secret] said password=[secret]"
    assert runner.masked("password=hunter22", ()) == "password=hunter22"


HARD = ["a", "a-", "token", "sk- ", "ey-", "x://", "_pwd", "-----BEGIN ", "bearer ", "ab.cd:ef."]


@pytest.mark.parametrize("word", HARD)
def test_no_pattern_reads_a_long_text_more_than_a_few_times(word: str) -> None:
    """One that backtracks would take hours for what a tool may return, and this test would time out."""
    text = word * (100_000 // len(word))
    assert runner.masked(text) == text
