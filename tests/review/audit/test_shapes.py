"""Runs of every shape there is: each has a story and a page, whatever happened in it."""

import runner
from runner._cli._render import _page
from tests.cli.conftest import Refold
from tests.review.audit.pages import Page
from tests.support import ROOT

HISTORIES = ROOT / "tests" / "golden" / "v1" / "histories"


def test_every_history_has_a_story_and_a_page_that_agree(refold: Refold) -> None:
    """Both name every call, every attempt's key, every finding, and every life."""
    names = sorted(path.name for path in HISTORIES.iterdir() if path.name != "batch")
    assert len(names) > 40
    for name in names:
        audited = runner.review.audit(name, HISTORIES)
        said = refold("audit", name, "--runs", HISTORIES)
        page = Page(_page.render(audited, runner.review.SECRET_PATTERNS))
        assert said.status == (0 if audited.problem is None else 5), name
        places = {f"#{place}" for place in page.ids} | {"data:,"}
        assert set(page.links) <= places, name
        for finding in audited.story.findings:
            assert finding.kind in said.out, name
            assert finding.kind in page.text, name
        for call in audited.story.calls:
            assert f"call-{call.id}" in page.ids, name
            for attempt in call.attempts:
                assert f"key {attempt.key}" in said.out, name
                assert attempt.key in page.text, name
        for life in audited.story.lives:
            assert f"\nLife {life.life}  " in said.out, name
            assert f"life-{life.life}" in page.ids, name
