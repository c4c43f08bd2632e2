"""Commands that other packages bring to `refold` by an entry point."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Refold

MODULE = """
import click
import runner
from runner import commands

class Late(Exception):
    hint = "Pay by Friday."
    exit_status = 4

@click.command()
@click.argument("what")
def invoices(what: str) -> None:
    \"\"\"List invoices.\"\"\"
    if what == "late":
        raise Late("two are late")
    if what == "broken":
        raise ValueError("no such year")
    commands.out.out(f"two \\x1b[31m{what}")
"""

Bring = Callable[..., None]


@pytest.fixture
def bring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bring:
    """Installs a package that brings commands: entry points by name."""

    def installed(**entries: str) -> None:
        place = tmp_path / "site"
        (place / "acme-1.0.dist-info").mkdir(parents=True)
        (place / "acme-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
        lines = "".join(f"{name} = {value}\n" for name, value in entries.items())
        (place / "acme-1.0.dist-info" / "entry_points.txt").write_text(f"[refold.commands]\n{lines}")
        (place / "acme_commands.py").write_text(MODULE)
        monkeypatch.syspath_prepend(place)

    return installed


def _sections(text: str) -> dict[str, list[str]]:
    """The names of the commands below each heading of the help."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            found[line[:-1]] = []
        elif line.startswith("  ") and line[2:3].isalpha() and found:
            found[next(reversed(found))].append(line.split()[0])
    return found


def test_a_command_of_another_package_is_listed_after_ours_and_runs_like_ours(bring: Bring, refold: Refold) -> None:
    """Its errors become a sentence, a hint and a status too, by what they are and not by their names."""
    bring(invoices="acme_commands:invoices")
    listed = _sections(refold("--help").out)
    assert list(listed)[-3:] == ["Commands", "Commands of other packages", "Demonstration"]
    assert listed["Commands of other packages"] == ["invoices"]
    assert listed["Demonstration"] == ["sweep", "tracker", "triage"]
    assert refold("invoices", "open") == (0, "two \\x1b[31mopen\n", "")
    assert refold("invoices", "late") == (4, "", "refold: two are late\n  Pay by Friday.\n")
    said = refold("invoices", "broken")
    assert (said.status, said.err.splitlines()[0]) == (1, "refold: ValueError: no such year")
    assert refold("invoices").status == 2


def test_a_name_of_ours_stays_ours(bring: Bring, refold: Refold) -> None:
    """Installing a package must not change what a script's `refold ls` does."""
    bring(ls="acme_commands:invoices")
    assert "List the runs" in refold("ls", "--help").out
    assert "Commands of other packages" not in refold("--help").out


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("acme_nowhere:invoices", "ModuleNotFoundError"),
        ("acme_commands:nothing", "AttributeError"),
        ("acme_commands:Late", "is a type, not a click.Command"),
    ],
)
def test_a_command_that_can_not_be_imported_breaks_no_other(bring: Bring, refold: Refold, value: str, why: str) -> None:
    """It is listed, says why when it is run whatever its options are, and names the package to blame."""
    bring(invoices=value)
    listed = refold("--help")
    assert (listed.status, "invoices" in listed.out) == (0, True)
    assert refold("ls").status == 0
    for words in ([], ["--help"], ["open", "--all"]):
        refold("invoices", *words).ends(1, err=[why, "Mend or uninstall acme"])
