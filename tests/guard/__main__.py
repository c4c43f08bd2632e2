"""Count, and store what was counted in `figures.json`: `python -m tests.guard`."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.guard import counting
from tests.guard.test_counts import saved
from tests.guard.test_growth import calls_of_turns, usual

PLACE = Path(__file__).with_name("figures.json")

figures = json.loads(PLACE.read_text(encoding="utf-8"))
for count in (142, 1000):
    with TemporaryDirectory() as folder:
        figures["bytes"][str(count)] = {"lines": saved(Path(folder), count).lines}
with TemporaryDirectory() as folder:
    figures["calls"][counting.VERSION] = usual(calls_of_turns(Path(folder)))
figures["instructions"][counting.VERSION] = {work: round(ratio, 4) for work, ratio in counting.ratios().items()}
PLACE.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
