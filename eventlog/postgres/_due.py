"""Which runs somebody must carry on: those whose time has come, and those whose lease ran out.

Whoever asks is given runs that nobody else is given for a while, because the time in their rows is put off: so workers
that ask at the same moment do not meet at each run, and a run whose asker dies is given again. A run that is opened has
no such time. `now()` is the time of the statement; a clock that may move within it would have all waiting rows read.
"""

from collections.abc import Collection
from datetime import timedelta
from typing import Final

from eventlog.postgres._connections import Connections

PUT_OFF: Final = timedelta(seconds=30)
"""How long a run is given to nobody else."""
_DUE: Final = """
with due as (
  select found.run from unnest(%(agents)s::text[]) as a (name) cross join lateral (
    select run from refold.run where agent = a.name and wake <= now() and expires < now()
    order by wake limit %(limit)s for update skip locked) as found),
lost as (
  select run from refold.run where owner is not null and expires < now() and not closed
    and (wake is null or wake <= now()) and (agent is null or agent = any(%(agents)s))
  limit %(limit)s for update skip locked)
update refold.run r set wake = now() + %(put_off)s
from (select run from lost union select run from due limit %(limit)s) as found where r.run = found.run
returning r.run"""


def due(connections: Connections, agents: Collection[str], limit: int) -> list[str]:
    """Give up to `limit` runs of these agents, and of those that died before they named one."""
    values = {"agents": list(agents), "limit": limit, "put_off": PUT_OFF}
    return [row[0] for row in connections.rows(_DUE, values)] if limit > 0 else []
