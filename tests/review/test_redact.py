"""Masks: what looks like a secret is hidden, and what does not is left as it was."""

import re
import time

import pytest

import runner
from tests.review import secrets
from tests.review.retrace.histories import GOLDEN

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
    assert runner.review.redact(text) == shown
    assert runner.review.redact(shown) == shown


@pytest.mark.parametrize("text", LEFT)
def test_what_looks_like_no_secret_is_left_alone(text: str) -> None:
    """A page full of masks tells nothing."""
    assert runner.review.redact(text) == text


def test_a_secret_that_is_a_name_in_a_json_value_is_masked() -> None:
    """Its owner named a member by it; what stands beside it stays, of each of several."""
    token, other = "ghp_" + "a1B2" * 9, "ghp_" + "c3D4" * 9
    assert runner.review.redact({token: 1, other: 2}) == {"[secret]": 1, "[secret] 2": 2}
    assert runner.review.redact({token: {"of": [token, "x"]}}) == {"[secret]": {"of": ["[secret]", "x"]}}


def test_patterns_of_the_user_mask_what_no_shape_gives_away() -> None:
    """A customer's number looks like any other."""
    patterns = (*runner.review.SECRET_PATTERNS, re.compile(r"customer \d+"))
    assert runner.review.redact("customer 7788 said password=hunter22", patterns) == "[secret] said password=[secret]"
    assert runner.review.redact("password=hunter22", ()) == "password=hunter22"


@pytest.mark.fault("a secret on a page that others see")
@pytest.mark.parametrize("name", [*secrets.TOKENS, *secrets.NAMED])
def test_a_secret_of_every_known_form_is_masked_whole(name: str) -> None:
    """No six characters of it are left, and masking twice changes nothing more."""
    text, secret = (secrets.TOKENS | secrets.NAMED)[name]
    shown = runner.review.redact(text)
    assert not [secret[i : i + 6] for i in range(len(secret) - 5) if secret[i : i + 6] in shown]
    assert runner.review.redact(shown) == shown


@pytest.mark.fault("a page full of masks")
def test_nothing_in_the_logs_of_the_demonstration_is_taken_for_a_secret() -> None:
    """They hold keys of idempotency, digests, prices of tokens and code, and no secret."""
    for line in (line for path in GOLDEN.rglob("*.jsonl") for line in path.read_text(encoding="utf-8").splitlines()):
        assert runner.review.redact(line) == line


HARD = (
    'a|a-|token|sk- |ey-|x://|_pwd|bearer |ab.cd:ef.|password=|key=|key="|?key=|-u a:|<token>|token>a|"token", "|\\"'
    '|$1$|api_key | --a|pwd| sid|ghp_|SG.aaaaaaaaaaaaaaaaaaaa.|name: token |password=\\"|1:A|-----BEGIN '
    "|-----BEGIN PRIVATE KEY-----|ey\u00e9"
)


@pytest.mark.fault("a text that a pattern reads over and over")
@pytest.mark.parametrize("unit", HARD.split("|"))
@pytest.mark.parametrize("size", [1 << 17, pytest.param(1 << 20, marks=pytest.mark.full)])
def test_hostile_text_is_masked_in_linear_time(unit: str, size: int) -> None:
    """A mebibyte takes half a second on a quiet machine; a pattern that backtracks would take hours."""
    took = []
    for part in (size // 8, size):
        text = unit * (part // len(unit))
        began = time.process_time()
        runner.review.redact(text)
        took.append(time.process_time() - began)
    assert took[1] < 3
    assert took[1] < 32 * max(took[0], 0.01)
