"""What README says of the effects is what `guarantees` says of a tool that declares them."""

from __future__ import annotations

from datetime import timedelta
from typing import get_args

import pytest

import runner
from replay.values import Effect
from tests.docs import documents
from tests.support import tools


@pytest.mark.fault("a guarantee promises what can't be")
@pytest.mark.parametrize("effect", get_args(Effect))
def test_the_table_of_effects_says_what_is_promised(effect: Effect) -> None:
    """In the same words, so that nobody has to ask which of the two is meant."""
    tool = tools.make("act", effect, lookup=True, key_ttl=timedelta(hours=24))
    (promised,) = runner.review.guarantees(tools.agent(tool))
    rows = {row[0].partition(" ")[0].strip("`"): row[2] for row in documents.tables("README.md") if len(row) == 3}
    assert rows[effect] == promised.words.replace("24 h", "`key_ttl=`")
