"""Dollars: what an ask cost, and the most that one can cost, by the prices of the time that the log holds.

Prices are the user's own (`Price`), else those of genai-prices, which the extra `prices` brings. A model in neither has
an unknown cost, which is None and never 0. Tokens and web searches are counted; a vendor's tool that is
paid by time or by size is not.
"""

import functools
import importlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import ModuleType

from msgspec.structs import asdict

from replay.messages import CostBound, Usage
from replay.values import Limits
from runner.errors import BadAgent

MILLION = 1_000_000


@dataclass(frozen=True)
class Price:
    """A model's prices in dollars per million tokens.

    `cache_read` and `cache_write` are of input tokens read from and written to the provider's cache; without them the
    price is that of other input. Raises `BadAgent` when one is negative or not finite.
    """

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None

    def __post_init__(self) -> None:
        for name, price in vars(self).items():
            if price is not None and not (isinstance(price, int | float) and 0 <= price < math.inf):
                raise BadAgent(f"the price {name}={price!r} is no number of dollars")

    def of(self, usage: Usage) -> float:
        """What this usage costs."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        plain = max(0, usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens)
        return (
            plain * self.input
            + usage.cache_read_tokens * read
            + usage.cache_write_tokens * write
            + usage.output_tokens * self.output
        ) / MILLION

    def most(self, input_tokens: int, output_tokens: int) -> float:
        """The most that so many tokens cost."""
        dearest = max(self.input, self.cache_write or 0.0, self.cache_read or 0.0)
        return (input_tokens * dearest + output_tokens * self.output) / MILLION


@dataclass(frozen=True)
class Sale:
    """What a list of prices needs to know: who sold which model, when, on what terms.

    `models` are the names it may go by, the likeliest first; `terms` are what a vendor prices apart, as `service_tier`
    or `speed`. `seller` is a name, or the address of a server.
    """

    seller: str
    models: tuple[str, ...]
    at: datetime | None
    terms: Mapping[str, str] = field(default_factory=dict)


def cost(price: Price | None, sale: Sale, usage: Usage, more: Mapping[str, int]) -> float | None:
    """What an ask cost; `more` counts what `Usage` has no field for, in the words of genai-prices."""
    if price is not None:
        return price.of(usage)
    return _listed(sale, {**asdict(usage), **more})


def most(price: Price | None, sale: Sale, input_tokens: int, output_tokens: int) -> float | None:
    """The most an ask can cost: all its input at the dearest of the prices that input may have."""
    if price is not None:
        return price.most(input_tokens, output_tokens)
    plain = {"input_tokens": input_tokens, "output_tokens": output_tokens}
    written = plain | {"cache_write_tokens": input_tokens}
    kept = written | {"cache_write_1h_tokens": input_tokens}
    usual = Sale(sale.seller, sale.models, sale.at)
    costs = [_listed(terms, counts) for terms in (usual, sale) for counts in (plain, written, kept)]
    return max((dollars for dollars in costs if dollars is not None), default=None)


def bound(limits: Limits, sale: Sale, size: Callable[[], int], most_output: int | None) -> CostBound:
    """The most a framework's request can cost; its input is only measured for a run that has a limit."""
    if limits.dollars is None and limits.tokens is None:
        return CostBound()
    read, written = size(), most_output or 0
    return CostBound(
        input_tokens=read, output_tokens=written, dollars=most(None, sale, read, written) if written else None
    )


@functools.cache
def listing() -> ModuleType | None:
    """The list of prices, or None without the extra that brings it."""
    try:
        return importlib.import_module("genai_prices")
    except ModuleNotFoundError:
        return None


def _listed(sale: Sale, counts: Mapping[str, int]) -> float | None:
    prices = listing()
    if prices is None:
        return None
    by = "provider_api_url" if "://" in sale.seller else "provider_id"
    for model in sale.models:
        try:
            found = prices.calc_price(
                prices.Usage(**{name: count for name, count in counts.items() if count}),
                model,
                genai_request_timestamp=sale.at or datetime.now(UTC),
                price_context=dict(sale.terms) or None,
                **{by: sale.seller},
            )
        except (LookupError, ValueError):  # a model that nobody listed, or counts that contradict each other
            continue
        return float(found.total_price)
    return None
