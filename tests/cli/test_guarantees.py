"""`refold guarantees`: one row for each tool, and an exit status that CI can stand on."""

import pytest

from tests.cli.conftest import AGENTS, Refold

AGENT = f"--agent={AGENTS}:plain"


def test_one_row_for_each_tool_says_what_a_death_in_it_means(refold: Refold) -> None:
    """In the words of the ladder; in a pipe each on one line, for grep."""
    said = refold("guarantees", AGENT).ends(0)
    lines = dict(line.split(maxsplit=1) for line in said.out.splitlines()[1:])
    assert list(lines) == ["look", "pay", "launch", "stumble", "die", "note", "meet", "gather", "shout"]
    assert lines["look"].endswith("runs again; may ask: no; may repeat: no")
    once = "once per to in this run, its continuations and forks"
    assert f"runs again with its key for 24 h, then asks a person; {once}; may ask: yes; may repeat: no" in lines["pay"]


def test_a_program_gets_the_same_as_facts(refold: Refold) -> None:
    """Each answer by itself, and the line."""
    launch = next(row for row in refold("guarantees", AGENT, "--json").json if row["tool"] == "launch")
    assert launch == {
        "tool": "launch",
        "effect": "non_idempotent",
        "words": "asks a person",
        "may_ask": True,
        "may_repeat": False,
        "approval": False,
        "line": "asks a person; may ask: yes; may repeat: no",
    }


@pytest.mark.parametrize(
    ("fail_on", "tools"),
    [
        (["may-repeat"], ["stumble may repeat", "die may repeat", "note may repeat", "meet may repeat"]),
        (["may-ask"], [f"{name} may ask" for name in ("pay", "launch", "stumble", "die", "note", "meet")]),
    ],
)
def test_ci_fails_on_what_it_names_and_is_told_which_tools(
    refold: Refold, fail_on: list[str], tools: list[str]
) -> None:
    """Whoever adds a tool that may stop a run at night hears of it by day."""
    said = refold("guarantees", AGENT, *(f"--fail-on={what}" for what in fail_on)).ends(1)
    assert said.err.splitlines() == [f"refold: {line}" for line in tools]


def test_without_an_agent_it_says_what_to_pass(refold: Refold) -> None:
    """There is no agent to guess."""
    refold("guarantees").ends(2, err="--agent")
