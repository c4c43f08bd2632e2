"""What the log says of child runs: whose child a run is, what a run has used, how a child rests in its parent."""

from __future__ import annotations

import msgspec


class Spent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a run has used in all its lives, its children's part included.

    `lost_*` are the bounds of requests whose reply never came. Dollars are US dollars. `unpriced` counts the requests
    of which no price is known.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float = 0.0
    lost_input_tokens: int = 0
    lost_output_tokens: int = 0
    lost_dollars: float = 0.0
    lost_asks: int = 0
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        """Input and output tokens, lost bounds included. The token limit is compared with this."""
        return self.input_tokens + self.output_tokens + self.lost_input_tokens + self.lost_output_tokens

    @property
    def total_dollars(self) -> float:
        """US dollars for replies, and for the bounds of lost requests. The dollar limit is compared with this."""
        return self.dollars + self.lost_dollars

    def grown(self, was: Spent, now: Spent) -> Spent:
        """What is spent with what another run spent between two of its totals."""
        fields = self.__struct_fields__
        return Spent(**{name: getattr(self, name) + (getattr(now, name) - getattr(was, name)) for name in fields})


class ParentCall(msgspec.Struct, frozen=True, kw_only=True):
    """The call that a child run does: of the run `run`, whose identity is `uid`."""

    run: str
    uid: str
    call: str
