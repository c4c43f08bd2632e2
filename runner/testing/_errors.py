"""What a sweep can't do, each a sentence with the next step."""

import runner


class NotRepeatable(runner.RunError):
    """Two undisturbed runs of the same agent differ, so no death can be put at the same point twice.

    `first` and `second` are the first points that differ; `why` is how the first one ended when it did not finish.
    """

    hint = "Make the agent and its environment depend on nothing but their arguments: no clock, no random numbers."
    first: str
    second: str
    why: str = ""

    def __str__(self) -> str:
        if self.why:
            return f"the undisturbed run did not finish: {self.why}"
        return f"two undisturbed runs differ: {self.first!r} in the first, {self.second!r} in the second"


class NothingToCount(runner.RunError):
    """In the undisturbed run no tool that acts was called, or no effect was counted: a sweep would prove nothing."""

    hint = "Let the model call the tools that act, and let `effects` count what they do."
    acted: bool

    def __str__(self) -> str:
        what = "no effect was counted" if self.acted else "no tool that acts was called"
        return f"{what} in the undisturbed run"


class NoSuchScenario(runner.RunError):
    """A sweep has no scenario of this id."""

    sentence = "the sweep has no scenario {id!r}"
    hint = "Take an id from a failure, and sweep the same agent with the same `without` and `seed`."
    id: str
