"""The same torture without one safeguard: each must be missed. `python -m tests.postgres.ablations [RUNS] [SEED]`.

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
TIMES, PATIENCE = 12, 60.0
"""How often what is to be missed comes, and how long is waited for runs that never end."""


def main(runs: int, seed: int) -> int:
    """Print what was wrong without each; the status says whether each was missed, and nothing else was wrong."""
    fine = True
    cluster = Cluster()
    try:
        for without, (troubles, shares) in WITHOUT.items():
            given: dict[str, Any] = {"times": TIMES, "patience": PATIENCE, "shares": shares, "without": without}
            if without == "-":
                given |= {"times": TIMES // len(troubles), "patience": 10 * PATIENCE}
            wrong, said = tortured(cluster, runs, seed, troubles, **given)
            fine = fine and (not wrong) is (without == "-")
            sys.stdout.write(f"without {without}: {said}\n" + "".join(f"    {each[:200]}\n" for each in wrong[:3]))
            sys.stdout.flush()
    finally:
        cluster.close()
    return 0 if fine else 1


if __name__ == "__main__":
    words = [*sys.argv[1:], *("600", "20")[len(sys.argv) - 1 :]]
    sys.exit(main(*map(int, words)))
