"""Dollars: what was said to be used, at the prices of the logged time; unknown is never nothing."""

import asyncio
import json
import sys
import types
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

import runner
from replay.events import ModelAsked
from replay.messages import UserMessage
from runner.models import Price, _prices
from runner.models.anthropic import Anthropic
from runner.models.openai import Chat, Responses
from tests.models import cases
from tests.models.dialects import DIALECTS, CannedReply
from tests.models.server import Answer, Server
from tests.models.test_requests import request

LAST = CannedReply(text="Done.")
CALL = CannedReply(calls=(("c1", "pay", '{"cents": 5}'),), stop="tool_calls")
PRICE = Price(input=2.0, output=10.0, cache_read=0.5)


@pytest.fixture
def no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra `prices` is not installed."""
    monkeypatch.setattr(_prices, "listing", lambda: None)


def asked(made: Any, body: bytes, **options: Any) -> runner.Reply:
    """A reply of a model that is made for a server's address."""
    with Server(Answer(body)) as server:
        reply: runner.Reply = asyncio.run(made(server.url).ask(request(**options)))
        return reply


def body(name: str, model: str, **usage: Any) -> bytes:
    """A reply of a model that used so much."""
    told = json.loads(DIALECTS[name].whole(LAST))
    told |= {"model": model, "usage": usage, "service_tier": usage.pop("tier", "default")}
    return json.dumps(told).encode()


def claude(url: str) -> Anthropic:
    """A model on the list."""
    return Anthropic("claude-sonnet-5-5", base_url=url)


@pytest.mark.fault("a provider that does not count")
@pytest.mark.parametrize("wrong", [-5, 10**400, "many", None, 1.5, True])
@pytest.mark.parametrize(
    ("name", "made", "sent", "came"),
    [
        ("anthropic", lambda url: Anthropic("m", base_url=url, prices=PRICE), "input_tokens", "output_tokens"),
        ("responses", lambda url: Responses("m", base_url=f"{url}/v1", prices=PRICE), "input_tokens", "output_tokens"),
        ("chat", lambda url: Chat("m", base_url=f"{url}/v1", prices=PRICE), "prompt_tokens", "completion_tokens"),
    ],
)
def test_tokens_that_are_no_number_cost_as_much_as_they_may(
    name: str, made: Any, sent: str, came: str, wrong: Any
) -> None:
    """The reply is paid and is kept; counted as nothing, a limit in dollars would never be reached."""
    most = made("http://x").bound(request())
    cached = {sent: 5, came: 5, f"{sent}_details": {"cached_tokens": 6}}  # more than there were
    contradictory = [cached] if name != "anthropic" else []
    for usage in ({sent: wrong, came: 5}, {sent: 5, came: wrong}, {sent: 5}, *contradictory):
        reply = asked(made, body(name, "m", **usage))
        assert (reply.text, reply.dollars) == ("Done.", most.dollars)
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (most.input_tokens, most.output_tokens)


def test_anthropics_tokens_have_four_prices_and_searches_one() -> None:
    """Input, cache reads, cache writes for five minutes and for an hour: 2, 0.1, 2.5 and 4 a million; output 10."""
    usage: dict[str, Any] = {"input_tokens": 100_000, "output_tokens": 10_000, "cache_read_input_tokens": 1_000_000}
    reply = asked(claude, body("anthropic", "claude-sonnet-5-5", **usage))
    assert reply.dollars == pytest.approx(0.2 + 0.1 + 0.1)
    assert (reply.usage.input_tokens, reply.usage.cache_read_tokens) == (1_100_000, 1_000_000)
    usage = {"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 1_000_000}
    usage["cache_creation"] = {"ephemeral_5m_input_tokens": 500_000, "ephemeral_1h_input_tokens": 500_000}
    usage["server_tool_use"] = {"web_search_requests": 100}
    assert asked(claude, body("anthropic", "claude-sonnet-5-5", **usage)).dollars == pytest.approx(1.25 + 2.0 + 1.0)


@pytest.mark.fault("a provider that does not count")
def test_details_of_a_usage_that_are_none_do_not_lose_a_paid_reply() -> None:
    """What they would have said is not known, so no token is a cheaper one; one kept for an hour was written."""
    usage: dict[str, Any] = {"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 1_000_000}
    more: dict[str, Any] = {"ephemeral_1h_input_tokens": 2_000_000}
    for details, dollars in ((5, 2.5), ([], 2.5), (more, 4.0)):
        reply = asked(claude, body("anthropic", "claude-sonnet-5-5", **usage, cache_creation=details))
        assert reply.dollars == pytest.approx(dollars)
    usage = {"input_tokens": 1_000_000, "output_tokens": 0, "input_tokens_details": 5}
    made = asked(lambda url: Responses("m", base_url=f"{url}/v1", prices=PRICE), body("responses", "m", **usage))
    assert made.dollars == pytest.approx(2.0)


def test_openais_terms_have_prices_of_their_own() -> None:
    """What was asked for does not count, but the tier on which it was answered."""
    usage = {"input_tokens": 1_000_000, "output_tokens": 0, "input_tokens_details": {"cached_tokens": 400_000}}

    def cost(tier: str) -> float:
        made = asked(
            lambda url: Responses("gpt-5.2", base_url=f"{url}/v1"), body("responses", "gpt-5.2", tier=tier, **usage)
        )
        assert made.dollars is not None
        return made.dollars

    assert cost("default") == pytest.approx(0.6 * 1.75 + 0.4 * 0.175)
    assert cost("flex") < cost("default") < cost("priority")


def test_a_snapshots_name_is_found_by_the_models_own() -> None:
    """A reply may name what no list knows, by which the user does not know it either."""
    usage = {"input_tokens": 1_000_000, "output_tokens": 0}
    assert asked(claude, body("anthropic", "inhouse-alias", **usage)).dollars == pytest.approx(2.0)
    unknown = asked(
        lambda url: Anthropic("claude-of-tomorrow", base_url=url), body("anthropic", "claude-of-tomorrow", **usage)
    )
    assert unknown.dollars is None


def test_chat_is_priced_by_the_server_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same name on a server of one's own costs something else."""
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert (Chat("gpt-5.2").bound(request()).dollars or 0) > 0
    assert Chat("gpt-5.2", base_url="http://127.0.0.1:9/v1").bound(request()).dollars is None


def test_it_is_priced_at_the_logged_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A retrace next year must come to the same bound."""
    times: list[datetime] = []

    class List:
        Usage = dict

        @staticmethod
        def calc_price(_usage: Any, _model: str, **options: Any) -> Any:
            times.append(options["genai_request_timestamp"])
            return types.SimpleNamespace(total_price=7)

    monkeypatch.setattr(_prices, "listing", lambda: List)
    at = datetime(2026, 2, 3, tzinfo=UTC)
    asked_then = msgspec.structs.replace(request(), at=at)
    assert claude("http://x").bound(asked_then).dollars == 7.0
    with Server(Answer(DIALECTS["anthropic"].whole(LAST))) as server:
        assert asyncio.run(claude(server.url).ask(asked_then)).dollars == 7.0
    assert set(times) == {at}


def test_an_ask_is_priced_by_its_own_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is the log's, which a process that resumes has, too."""
    seen: list[datetime | None] = []
    sale = _prices.Sale

    def noted(*args: Any) -> Any:
        made = sale(*args)
        seen.append(made.at)
        return made

    monkeypatch.setattr(_prices, "Sale", noted)
    clock = cases.Ticking()
    with Server(Answer(b"", 503), Answer(DIALECTS["chat"].whole(LAST))) as server:
        cases.start(DIALECTS["chat"].model(server.url), tmp_path, clock=clock)
    assert seen[0] == cases.NOON
    assert seen[-1] == clock.at > cases.NOON


@pytest.mark.usefixtures("no_list")
@pytest.mark.parametrize("name", DIALECTS)
def test_prices_of_ones_own_count(name: str, tmp_path: Path) -> None:
    """Per million: 100 plain at 2, 20 from the cache at 0.5, 30 out at 10."""
    dialect = DIALECTS[name]
    with Server(Answer(dialect.whole(LAST))) as server:
        made = dialect.model(server.url, prices=PRICE)
        came = cases.start(made, tmp_path, limits=runner.Limits(dollars=1))
    assert came.state.spent.dollars == pytest.approx((100 * 2.0 + 20 * 0.5 + 30 * 10.0) / 1e6)
    assert came.state.spent.unpriced == 0
    bound = cases.events(tmp_path, ModelAsked)[0].bound
    assert bound.dollars == pytest.approx((bound.input_tokens * 2.0 + 500 * 10.0) / 1e6)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", DIALECTS)
def test_a_dollar_limit_on_an_unknown_cost_refuses_to_start(
    name: str, known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit that is never reached, because everything looks free, is worse than none."""
    if not known:
        monkeypatch.setattr(_prices, "listing", lambda: None)
    dialect = DIALECTS[name]
    with Server(Answer(dialect.whole(LAST))) as server:
        made = dialect.model(server.url)
        with pytest.raises(runner.BadAgent, match=rf"limit of \$2, and what {name}-model costs is unknown"):
            cases.start(made, tmp_path, limits=runner.Limits(dollars=2))
        assert not (tmp_path / "runs").exists()
        assert not server.seen
        came = cases.start(made, tmp_path, limits=runner.Limits(turns=2))
    assert came.state.spent.unpriced == 1
    assert cases.replies(tmp_path)[0].dollars is None


def test_a_resume_with_a_dollar_limit_is_refused_and_not_counted(tmp_path: Path) -> None:
    """Nothing was done, so nothing is written; with prices it goes on."""
    dialect = DIALECTS["chat"]
    with Server(Answer(b"{}", 401)) as server, pytest.raises(runner.errors.ModelUnavailable):
        cases.start(dialect.model(server.url), tmp_path)
    before = runner.read_state("r", tmp_path / "runs")
    with Server(Answer(dialect.whole(CALL)), Answer(dialect.whole(LAST))) as server:
        limits = runner.Limits(dollars=2)
        with pytest.raises(runner.BadAgent):
            cases.resume(dialect.model(server.url), tmp_path, limits=limits)
        assert runner.read_state("r", tmp_path / "runs").seq == before.seq
        assert cases.resume(dialect.model(server.url, prices=PRICE), tmp_path, limits=limits).answer == "Done."


def test_the_limit_in_dollars_stops_a_run(tmp_path: Path) -> None:
    """It overshoots by one ask at most."""
    dialect = DIALECTS["responses"]
    with Server(Answer(dialect.whole(CALL)), Answer(dialect.whole(LAST))) as server:
        with pytest.raises(runner.errors.DollarLimit):
            cases.start(dialect.model(server.url, prices=PRICE), tmp_path, limits=runner.Limits(dollars=0.0004))
        assert len(server.seen) == 1


@pytest.mark.parametrize(("name", "streamed"), cases.MODES, ids=cases.IDS)
def test_a_bound_is_the_same_for_the_same_request_and_above_what_can_be_used(name: str, streamed: bool) -> None:
    """No token is shorter than a byte, and what a vendor adds for tools is counted on top."""
    made = cases.model(DIALECTS[name], "http://x", streamed=streamed, prices=PRICE)
    text = "語" * 1000
    bounds = {made.bound(request([UserMessage(text)])) for _ in range(2)}
    (bound,) = bounds
    assert bound.input_tokens > 3000 + 1000
    assert bound.output_tokens == 500
    assert bound.dollars == pytest.approx(PRICE.most(bound.input_tokens, 500))


def test_a_bound_takes_the_dearest_way_an_ask_can_be_billed() -> None:
    """Every byte a token, written to the cache for an hour; and the tier that an account may have chosen."""
    bound = Anthropic("claude-sonnet-5-5", max_tokens=1000).bound(request())
    assert bound.dollars == pytest.approx((bound.input_tokens * 4.0 + 1000 * 10.0) / 1e6)
    auto = Responses("gpt-5.2", max_tokens=1000).bound(request()).dollars
    plain = Responses("gpt-5.2", max_tokens=1000).bound(request(parameters={"service_tier": "default"})).dollars
    assert auto is not None
    assert plain is not None
    assert auto > plain * 1.5
    assert PRICE.most(1_000_000, 0) == 2.0
    assert Price(1, 0, cache_write=3).most(1_000_000, 0) == 3.0


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf"), "3", [1]])
def test_a_price_that_is_none_is_refused(wrong: Any) -> None:
    """It would make the limit in dollars mean nothing."""
    with pytest.raises(runner.BadAgent, match="is no number of dollars"):
        Price(1.0, wrong)


def test_without_the_list_of_prices_a_cost_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is one, and an agent without a limit in dollars needs it not."""
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    _prices.listing.cache_clear()
    try:
        assert claude("http://x").bound(request()).dollars is None
    finally:
        _prices.listing.cache_clear()
