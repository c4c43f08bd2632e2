"""The same torture without one safeguard: each must be missed.

`python -m tests.postgres.ablations [NAME...]`, with names of what is taken away, by default all of them.

It is a command and no test, because what goes wrong at random may not; `test_safeguards` takes the same safeguards away
and leaves nothing to chance. Only what each safeguard is there for goes wrong here, several times.
"""

import sys
from typing import Any

from tests.postgres.crowd import SHARES
from tests.postgres.test_storm import TROUBLES, tortured
from tests.support.postgres import Cluster

WITHOUT = {
    "-": (TROUBLES, SHARES),
    "token": (("freeze",), SHARES),
    "check": (("freeze",), ("posts",)),
    "wait": (("cut",), ("mails",)),
    "mail": (("kill",), ("loops",)),
}
"""What each safeguard that a worker can work without is there for, and for which runs; `-`: nothing is taken away."""
RUNS, SEED = 600, 20
TIMES, PATIENCE = 12, 60.0
"""How often what is to be missed comes, and how long is waited for runs that never end."""


def main(*names: str) -> int:
    """Print what was wrong without each; the status says whether each was missed, and nothing else was wrong."""
    fine = True
    cluster = Cluster()
    try:
        for without in names or WITHOUT:
            troubles, shares = WITHOUT[without]
            given: dict[str, Any] = {"times": TIMES, "patience": PATIENCE, "shares": shares, "without": without}
            if without == "-":
                given |= {"times": TIMES // len(troubles), "patience": 10 * PATIENCE}
            wrong, said = tortured(cluster, RUNS, SEED, troubles, **given)
            fine = fine and (not wrong) is (without == "-")
            sys.stdout.write(f"without {without}: {said}\n" + "".join(f"    {each[:200]}\n" for each in wrong[:3]))
            sys.stdout.flush()
    finally:
        cluster.close()
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
