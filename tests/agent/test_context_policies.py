"""What is sent of a long conversation: the first message always, results never without their calls, and marks."""

import itertools
from pathlib import Path
from typing import Any

import pytest

import runner
from replay.messages import AssistantMessage, Message, ToolResults, UserMessage
from runner.testing import ScriptedModel, tool_calls

TURNS = 12
RUN = "r1"


@runner.tool(effect="reads")
def look(n: int) -> str:
    """Look."""
    return f"{n} " * 100


class Watched(ScriptedModel):
    """A model that keeps what it was sent, and says that four characters are a token."""

    sent: list[tuple[Message, ...]]

    async def ask(self, request: runner.Request) -> runner.Reply:
        """As the script says."""
        self.sent = [*getattr(self, "sent", []), tuple(request.messages)]
        tokens = sum(len(repr(message)) for message in request.messages) // 4
        reply = await super().ask(request)
        return _with(reply, tokens)


def _with(reply: runner.Reply, tokens: int) -> runner.Reply:
    return runner.Reply(
        text=reply.text, calls=reply.calls, usage=runner.Usage(input_tokens=tokens), dollars=0.0, stop=reply.stop
    )


def run(policy: runner.Policy | None, folder: Path, **options: Any) -> tuple[runner.Agent, list[tuple[Message, ...]]]:
    """A run of many turns, and what was sent at each."""
    model = Watched([*(tool_calls(("look", {"n": n})) for n in range(TURNS)), "Done."])
    agent = runner.Agent(name="a", model=model, tools=[look], context=policy)
    runner.start_sync(agent, "The task.", runs=folder, run=RUN, **options)
    return agent, model.sent


POLICIES: dict[str, runner.Policy] = {
    "last": runner.KeepLast(5),
    "results": runner.DropResults(keep=4),
    "tokens": runner.TokenBudget(600),
}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.fault("a policy tears results from their calls, or forgets the task")
def test_what_is_sent_begins_with_the_task_and_has_every_result_behind_its_call(name: str, tmp_path: Path) -> None:
    """As providers demand."""
    agent, sent = run(POLICIES[name], tmp_path)
    assert len(sent) == TURNS + 1
    for messages in sent:
        assert messages[0] == UserMessage("The task.")
        for before, after in itertools.pairwise(messages):
            if isinstance(after, ToolResults):
                assert isinstance(before, AssistantMessage)
                assert [r.call for r in after.results] == [c.id for c in before.reply.calls]
    found = runner.review.retrace(RUN, agent, runs=tmp_path)
    assert (found.divergence, found.drift) == (None, ())
    without = runner.review.retrace(RUN, agent.replace(context=None), runs=tmp_path)
    assert {drift.part for drift in without.drift} == {"context", "messages"}


def test_the_last_messages_are_kept_and_a_mark_says_what_is_left_out(tmp_path: Path) -> None:
    """One more where a result would be torn from its call."""
    _, sent = run(runner.KeepLast(5), tmp_path)
    assert [len(messages) for messages in sent[:3]] == [1, 3, 5]
    assert sent[-1][1] == UserMessage("[18 messages are left out here]")
    assert len(sent[-1]) in (7, 8)


def test_old_results_are_marked_and_their_calls_stay(tmp_path: Path) -> None:
    """The model sees what it asked for."""
    _, sent = run(runner.DropResults(keep=4), tmp_path)
    results = [m.results[0].text for m in sent[-1] if isinstance(m, ToolResults)]
    marked = [text for text in results if text.startswith("[")]
    assert len(results) == TURNS
    assert set(marked) == {"[200 characters are left out here]"}
    assert len(marked) == TURNS - 2


def test_requests_stay_within_a_budget_of_tokens(tmp_path: Path) -> None:
    """As the replies' own usage counts them; what was left out once stays left out."""
    _, all_of_it = run(None, tmp_path / "all")
    _, sent = run(runner.TokenBudget(600), tmp_path / "less")

    def tokens(messages: tuple[Message, ...]) -> int:
        return sum(len(repr(message)) for message in messages) // 4

    assert tokens(all_of_it[-1]) > 1500
    assert max(tokens(messages) for messages in sent) < 900
    oldest = [
        min((m.reply.calls[0].id.zfill(4) for m in messages if isinstance(m, AssistantMessage)), default="")
        for messages in sent
    ]
    assert oldest == sorted(oldest)


def test_a_run_that_continues_another_keeps_its_own_task(tmp_path: Path) -> None:
    """Both tasks are sent, however much is left out between them."""
    run(None, tmp_path)
    model = Watched(["Done."])
    agent = runner.Agent(name="a", model=model, tools=[look], context=runner.KeepLast(0))
    runner.start_sync(agent, "The next task.", runs=tmp_path, after=RUN)
    assert [m.text for m in model.sent[0] if isinstance(m, UserMessage)][:2] == ["The task.", "The next task."]


@pytest.mark.parametrize("policy", [runner.KeepLast(-1), runner.DropResults(-1), runner.TokenBudget(-5)], ids=repr)
def test_a_policy_of_impossible_numbers_is_refused(policy: runner.Policy) -> None:
    """Where it is declared."""
    with pytest.raises(runner.BadAgent, match="context is"):
        runner.Agent(name="a", model=ScriptedModel([]), context=policy)
