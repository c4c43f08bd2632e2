"""The sweep: every point of a run, what it finds when nothing is wrong, and what it finds when something is."""

import itertools
import json
import os
import signal
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import runner
import runner.testing
from runner import testing
from runner.testing._modes import TROUBLES
from tests.support import ROOT, stage
from tests.support.forkserver import ForkServer
from tests.testing import shop
from tests.testing.windows import SAVED, names, window


def swept(script: tuple[Any, ...] = shop.DAY, **options: Any) -> testing.SweepReport:
    """Sweep the shop, with few second crashes unless more are asked for."""
    given: dict[str, Any] = {"modes": ["memory"], "pairs": 0, **options}
    return testing.sweep(**shop.swept(*script), **given)


SENT = (shop.MAILS, "sent")


@cache
def points() -> tuple[str, ...]:
    """The points of an ordinary day."""
    return swept(only="memory:0").points


@cache
def asked() -> tuple[testing.Scenario, ...]:
    """Everything that a person was asked about one parcel, answered wrongly and not at all."""
    return swept(SENT, modes=["person"]).scenarios


def test_a_crash_can_land_before_inside_and_after_whatever_reaches_the_outside() -> None:
    """A sweep that misses a file operation, an ask, a tool, a lookup or a question would prove little."""
    found = names(points())
    assert found[:2] == ["make directory runs, before", "make directory runs, after"]
    for what in ("write seg-000001.jsonl", "write head", "model turn 1", "tool mail 2.1", "tool pay 2.0"):
        assert f"{what}, before" in found or what.startswith("write head")
        assert f"{what}, after" in found
        assert f"{what}, inside" in found or what.startswith("model")
    for name in ("sync seg-000001.jsonl", "rename today.txt", "sync directory notes", "question 2.0-approve"):
        assert f"{name}, after" in found
    assert found[-1].endswith("after")


@pytest.mark.fault("killed between two operations")
def test_nothing_is_repeated_or_lost_by_a_death_at_any_point_of_a_day() -> None:
    """Every kind of effect, an approval, a wave of reads, files of the workspace."""
    sweep = swept(every=8)
    assert not sweep.failures, str(sweep)
    (row,) = sweep.rows
    assert row.scenarios >= len(points()) // 8
    assert (row.duplicates, row.lost, row.questions, row.unfinished) == (0, 0, 0, 0)


def test_the_guide_says_what_goes_wrong_in_every_mode() -> None:
    """In the words of the table of modes; the demo's guide has what each came to."""
    rows = [f"| `{mode}` | {TROUBLES[mode].about} |" for mode in testing.MODES]
    assert "\n".join(rows) in (ROOT / "runner" / "README.md").read_text()
    counted = (ROOT / "runner" / "triage" / "README.md").read_text().splitlines()
    assert all(any(line.startswith(f"| `{mode}` | ") for line in counted) for mode in testing.MODES)


@pytest.mark.parametrize("mode", testing.MODES)
def test_nothing_is_repeated_or_lost_by_any_trouble_and_a_death(mode: testing.Mode) -> None:
    """Each mode once, with second crashes; a person who is wrong costs what they were wrong about."""
    sweep = swept((shop.PAYS, "paid"), modes=[mode], every=1 if mode in ("model", "cancel", "park") else 13, pairs=1)
    assert not sweep.failures, str(sweep)
    (row,) = sweep.rows
    assert row.scenarios > 3
    if mode != "person":
        assert (row.duplicates, row.lost, row.questions, row.unfinished) == (0, 0, 0, 0)


def test_a_reply_is_paid_twice_only_when_its_save_was_cut_off() -> None:
    """From the line's write on, the reply is there; before it, nobody else has it."""
    sweep = swept(SENT)
    paid = [int(one.first.split(" ")[0]) for one in sweep.scenarios if one.paid_twice]
    found, due = names(sweep.points), list[int]()
    for turn in (1, 2):
        came = found.index(f"model turn {turn}, after")
        due += range(came, found.index(SAVED, came))
    assert paid == due


def test_without_keys_and_lookups_a_person_is_asked_exactly_where_an_effect_was_open() -> None:
    """The set is computed from the order of the points alone."""
    sweep = swept((shop.PAYS, "paid"), without=("keys", "lookups"))
    due = list(window(sweep.points, "pay 1.0"))
    assert [int(one.first.split(" ")[0]) for one in sweep.scenarios if one.questions] == due
    assert not sweep.failures, str(sweep)
    assert sweep.rows[0].without == "keys+lookups"


def test_with_two_crashes_a_person_is_asked_about_the_calls_that_were_open_and_no_other() -> None:
    """However the two fall."""
    sweep = swept((shop.PRINTS, "done"), without=("keys", "lookups"), every=5, pairs=2)
    assert any(one.questions and one.second for one in sweep.scenarios)
    for one in sweep.scenarios:
        assert {question.partition("-")[0] for question in one.questions} == set(one.in_doubt), one


def test_without_keys_a_lookup_settles_what_the_key_did() -> None:
    """No question, and no effect twice."""
    (row,) = swept((shop.PAYS, "paid"), without=["keys"], every=4).rows
    assert (row.duplicates, row.lost, row.questions, row.failures) == (0, 0, 0, 0)


@pytest.mark.fault("wrong answer of a person")
def test_a_wrong_answer_costs_the_effect_it_was_about_and_the_log_says_whose_it_was() -> None:
    """A duplicate for `rerun` of what had happened, a loss for `done` of what had not; the sweep checks the name."""
    wrong = [one for one in asked() if one.first.endswith("wrong")]
    costs = {(one.duplicates, one.lost) for one in wrong}
    assert costs == {(1, 0), (0, 1)}
    assert all(one.wrong_answers == 1 and not one.why for one in wrong)


def test_a_question_that_nobody_answers_waits_and_is_answered_from_outside() -> None:
    """The run is left paused; whoever comes by settles it, and nothing was lost by waiting."""
    nobody = [one for one in asked() if one.first.endswith("nobody")]
    assert nobody
    assert {(one.duplicates, one.lost, one.wrong_answers, one.unfinished) for one in nobody} == {(0, 0, 0, False)}


@pytest.mark.fault("keys forgotten by the service")
def test_a_service_that_forgets_its_keys_is_found_out(tmp_path: Path) -> None:
    """The tool says `keyed`, and its service keeps no keys: every failure names its point and plays again alike."""

    class Forgetful(shop.Shop):
        """Its till takes money whenever it is asked."""

        def pay(self, key: str, cents: int) -> str:
            """Take money."""
            self.did.append(f"pay {key}")
            return f"paid {cents}"

    def again(**options: Any) -> testing.SweepReport:
        agent = shop.clerk(shop.PAYS, "paid")
        return testing.sweep(environment=Forgetful, agent=agent, task=shop.TASK, effects=shop.effects, **options)

    sweep = again(modes=["memory"], every=2, pairs=0)
    first = sweep.failures[0]
    assert first.duplicates == 1
    assert first.why == (
        "1.0 pay ran again: the service took its key twice",
        "effects differ from those of an undisturbed run: pay +1",
    )
    assert f"failed: {first.why[0]}\n    {first.why[1]}\n    {first.id}: {first.first}\n" in str(sweep)
    assert again(only=first.id).scenarios == (first,)
    assert list(tmp_path.iterdir()) == []


def test_the_same_sweep_gives_the_same_whoever_does_the_work() -> None:
    """One process or two, in one order; another seed draws other second crashes."""
    one, two = (swept(SENT, every=12, pairs=1, jobs=jobs) for jobs in (1, 2))
    assert one == two
    assert swept(SENT, every=12, pairs=1, seed=1).scenarios != one.scenarios


def test_progress_is_reported_for_every_first_point() -> None:
    """From none to all."""
    seen: list[tuple[int, int]] = []
    swept(SENT, modes=["service"], progress=lambda done, of: seen.append((done, of)))
    assert seen == [(done, seen[-1][1]) for done in range(seen[-1][1] + 1)]


def test_every_environment_is_closed_when_its_scenario_is_over() -> None:
    """An environment may hold what only an explicit close releases: a server, a database."""
    states: list[str] = []

    class Open(shop.Shop):
        def __init__(self, folder: Path) -> None:
            assert "open" not in states
            states.append("open")
            super().__init__(folder)

        def close(self) -> None:
            states[-1] = "closed"

    testing.sweep(
        environment=Open, agent=shop.clerk(*SENT), task=shop.TASK, effects=shop.effects, modes=["late"], pairs=0
    )
    assert len(states) > 4
    assert set(states) == {"closed"}


@pytest.mark.fault("late effect")
def test_a_request_that_was_under_way_arrives_although_its_process_died() -> None:
    """Where a tool asks before it sends, as `runner.web` does, it has asked by then: nobody can call it back."""
    tried: list[list[int]] = []

    class Careful(shop.Shop):
        def __init__(self, folder: Path) -> None:
            tried.append([])
            super().__init__(folder)

    def mail(outside: Careful, call: runner.Call) -> str:
        call.holding(1.0)
        tried[-1].append(call.n)
        outside.did.append(f"mail {call.key}")
        return "sent"

    def agent(outside: Careful) -> runner.Agent:
        @runner.tool(name="mail", effect="non_idempotent", timeout=30)
        async def send(to: str, call: runner.Call) -> str:  # noqa: ARG001 (the model's)
            """Send a parcel."""
            return mail(outside, call)

        @send.lookup(visible_within=60)
        def sent(call: runner.Call) -> runner.Found | runner.Missing:
            return runner.Found("sent") if outside.has("mail", call.key) else runner.Missing()

        return shop.clerk(*SENT)(outside).replace(tools=[send])

    def again(only: str) -> testing.SweepReport:
        return testing.sweep(environment=Careful, agent=agent, task=shop.TASK, effects=shop.effects, only=only)

    on_its_way = names(again("late:1.0#0").points).index("tool mail 1.0, before") + 1
    for at in (1, 2, 3):
        swept = again(f"late:1.0#{at}/{on_its_way}")
        assert [one.second.partition(" ")[2] for one in swept.scenarios] == ["tool mail 1.0, on its way"]
        assert not swept.failures, str(swept)
        assert tried[-1] == [1]


def test_an_agent_that_draws_lots_cannot_be_swept() -> None:
    """No death could be put at the same place twice; the error names where two runs part."""
    lots = itertools.count()

    def agent(shop_: shop.Shop) -> runner.Agent:
        return shop.clerk(*([shop.MAILS] * (1 + next(lots) % 2)), "sent")(shop_)

    with pytest.raises(testing.NotRepeatable, match="two undisturbed runs differ") as refused:
        testing.sweep(environment=shop.Shop, agent=agent, task="x", effects=shop.effects)
    assert "no clock" in refused.value.hint


@pytest.mark.parametrize(
    "id_",
    [
        "memory:9999",
        "memory:4/",
        "memory:4/999",
        "power:4~99",
        "tidal:4",
        "service:9.9#0",
        "memory",
    ],
)
def test_an_id_that_no_scenario_has_is_said(id_: str) -> None:
    """Rather than played as something else."""
    with pytest.raises(testing.NoSuchScenario, match="no scenario"):
        swept(SENT, only=id_)


def test_what_fails_in_another_process_is_raised_in_this_one() -> None:
    """With where it was."""

    def effects(_: shop.Shop) -> dict[str, int]:
        if os.getpid() != ours:
            raise ZeroDivisionError
        return {"mail": 1}

    ours = os.getpid()
    with pytest.raises(testing.WorkerFailed, match="ZeroDivisionError") as failed:
        testing.sweep(environment=shop.Shop, agent=shop.clerk(*SENT), task="x", effects=effects, jobs=2)
    assert "jobs=1" in failed.value.hint


def test_a_count_that_fails_is_said_and_is_no_failure_of_the_tool() -> None:
    """A tool that seemed to have failed would be tried again, and a person asked about it, hundreds of times."""
    counts = itertools.count()

    def effects(outside: shop.Shop) -> dict[str, int]:
        if next(counts) == 6:
            raise ZeroDivisionError
        return shop.effects(outside)

    swept = testing.sweep(
        environment=shop.Shop, agent=shop.clerk(*SENT), task="x", effects=effects, modes=["memory"], only="memory:0"
    )
    (failure,) = swept.failures
    assert failure.why == ("what happened can't be counted: ZeroDivisionError()",)


def endless(root: str) -> None:
    """Sweep in two processes that note their ids and never come to an end."""

    def effects(_: shop.Shop) -> dict[str, int]:
        if os.getpid() != ours:
            (Path(root) / f"{os.getpid()}").touch()
            time.sleep(600)
        return {"mail": 1}

    ours = os.getpid()
    testing.sweep(environment=shop.Shop, agent=shop.clerk(*SENT), task="x", effects=effects, jobs=2)


@pytest.mark.fault("processes left behind")
def test_the_processes_of_a_sweep_that_is_killed_end_with_it(forks: ForkServer, tmp_path: Path) -> None:
    """Nobody else would end them."""
    (noted := tmp_path / "noted").mkdir()
    parent = forks.begin(endless, root=noted)
    stage.within(90, lambda: len(list(noted.iterdir())) == 2)
    os.kill(parent.pid, signal.SIGKILL)
    stage.within(90, lambda: not any(Path("/proc", path.name, "exe").exists() for path in noted.iterdir()))
    assert parent.end().killed


def test_a_run_that_does_not_finish_by_itself_says_why() -> None:
    """Nothing can be compared with it."""
    with pytest.raises(runner.errors.TurnLimit):
        testing.sweep(
            environment=shop.Shop,
            agent=lambda outside: shop.clerk(*SENT)(outside).replace(limits=runner.Limits(turns=1)),
            task="x",
            effects=shop.effects,
        )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"modes": ["memry"]}, r"modes is \['memry'\], every is 1: give some of memory, power, "),
        ({"modes": "memory"}, "modes is 'memory'"),
        ({"every": 0}, "every is 0"),
        ({"effects": lambda _: None}, "what `effects` gives is None, not numbers by name"),
        ({"effects": lambda _: {"mails": ["one"]}}, "not numbers by name"),
    ],
)
def test_an_option_that_can_t_be_meant_is_said_in_a_sentence(given: dict[str, Any], says: str) -> None:
    """Whoever writes their first sweep reads no traceback of ours."""
    made: dict[str, Any] = {"environment": shop.Shop, "agent": shop.clerk(*SENT), "task": "x", "effects": shop.effects}
    with pytest.raises(runner.BadAgent, match=says):
        testing.sweep(**{**made, **given})


def test_rows_of_several_sweeps_make_one_table_with_their_sum() -> None:
    """What is printed, whichever sweeps the rows come from."""
    rows = [testing.Row(mode="memory", scenarios=20, paid_twice=3), testing.Row(mode="kill", scenarios=5, lost=1)]
    assert testing.table(rows) == (
        "mode    without  scenarios  duplicates  lost  asked twice  questions  unfinished  failures\n"
        "memory                  20           0     0            3          0           0         0\n"
        "kill                     5           0     1            0          0           0         0\n"
        "all                     25           0     1            3          0           0         0"
    )


def test_what_a_model_says_when_it_is_asked_again_means_the_same() -> None:
    """Other words and spellings, the same calls; what is no JSON stays as it is."""
    reply = runner.testing.tool_calls(("pay", '{"a":1,"b":[2]}'), ("pay", '{"a":'), text="I pay.")
    again = testing.reword_reply(reply)
    assert [json.loads(call.arguments) if i == 0 else call.arguments for i, call in enumerate(again.calls)] == [
        {"a": 1, "b": [2]},
        '{"a":',
    ]
    assert again.text != reply.text
    assert again.calls[0].arguments != reply.calls[0].arguments
    assert testing.reword_reply(runner.Reply(text="done")) == runner.Reply(text="done")
