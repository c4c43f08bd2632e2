"""The report: one page about a run that needs no other file, and is the same bytes for the same history.

It fetches nothing: style and script are inline, and its content security policy allows these two alone, by digest,
whatever a model or a tool wrote. It holds no creation time, no path and no order that a process chose.
"""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup

import runner
from replay import Finding
from runner._cli._render import audit_text, event_text, question_text
from runner._cli._render._page import _rows
from runner._cli._render._page._axis import Axis
from runner._cli._render._page._texts import Texts

HERE = Path(__file__).parent


def render(
    audited: runner.review.Audited,
    patterns: Sequence[runner.review.SecretPattern],
    template: jinja2.Template | None = None,
    near: str | None = None,
    **more: object,
) -> str:
    """The page. `patterns` are those whose matches are masked; `template` extends the page, with `more`.

    With `near`, the id of an element or "", it shows the lines around that, or the last ones, and not a long log whole.
    """
    story, rows = audited.story, list(_rows.rows(audited.story))
    part = range(len(audited.lines)) if near is None else _rows.part(rows, near, len(audited.lines))
    rows = [row for row in rows if row.seq in part]
    written = list(_rows.written(audited.lines[part.start : part.stop]))
    return (template or environment().get_template("page.html")).render(
        audited=audited,
        story=story,
        rows=rows,
        part=part,
        written=written,
        findings=sorted(story.findings, key=_first),
        sums={line.seq: line.sum for line in audited.lines},
        axis=Axis(each.line.at for each in written),
        waiting=[(call, question) for call in story.calls for question in call.questions if question.answer is None],
        texts=Texts(patterns, [event for line in written for event in line.events]),
        spans=audit_text.spans(story),
        **more,
    )


@cache
def looks() -> dict[str, str]:
    """Style and script, with the digests by which a content policy names them."""
    found = dict[str, str]()
    for name, file in (("style", "page.css"), ("script", "page.js")):
        text = (HERE / file).read_text("utf-8")
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        found |= {name: Markup(text), f"{name}_digest": f"'sha256-{digest}'"}  # noqa: S704 (our own file)
    return found


@cache
def environment(*places: Path) -> jinja2.Environment:
    """The templates of these places and the page's own, made into code once for a process, with what all may use."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*places, HERE]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    made.globals |= {
        "told": audit_text,
        "words": event_text,
        "asking": question_text,
        "weight": _rows.weight,
        **looks(),
    }
    return made


def _first(finding: Finding) -> tuple[int, tuple[int, ...], str]:
    """What is wrong comes before what is worth a look, and that before what is good to know."""
    return ("heavy", "middle", "light").index(_rows.weight(finding)), finding.seqs, finding.kind
