"""The people of a torture: eight threads that make runs, answer, stop, fork and write to them, and remember it.

Whatever they are told (that the server is gone, that somebody was faster, that a worker holds the run) they take note
of, and try again where that is due.
"""

from __future__ import annotations

import functools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import eventlog
import runner
from eventlog.postgres import Postgres

Kind = Literal["answer", "stop", "message"]
THREADS = 8
MESSAGES = 3
"""How often somebody writes to a run, at most."""
SHARES = ("pays", "mails", "asks", "asks", "loops", "posts", "mails", "loops")
"""How the shapes are shared out among the runs."""


@dataclass(frozen=True)
class Said:
    """What somebody said, and what came of it: `left` in the inbox of whoever holds the run, or `written` into its log.

    It is `refused` with a reason, and when the server was lost its fate is `unknown`. `who` says it once only.
    """

    kind: Kind
    run: str
    question: str
    who: str
    came: Literal["written", "left", "refused", "unknown"]


@dataclass
class Crowd:
    """Who uses the runs. `runs` are all that were made, forks among them, with their shape."""

    store: Postgres
    agent: runner.Agent
    count: int
    seed: int
    pace: float
    shares: tuple[str, ...] = SHARES
    runs: dict[str, str] = field(default_factory=dict)
    said: list[Said] = field(default_factory=list)
    forks: int = 0
    failed: list[BaseException] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _made: int = 0
    _written: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> None:
        """Begin with all of them."""
        self._threads = [threading.Thread(target=self._live, args=(n,)) for n in range(THREADS)]
        for thread in self._threads:
            thread.start()

    @property
    def has_made_all(self) -> bool:
        """Whether every run was made."""
        return self._made >= self.count or bool(self.failed)

    @property
    def is_done(self) -> bool:
        """Whether nobody has anything left to say."""
        return not any(thread.is_alive() for thread in self._threads)

    def end(self) -> None:
        """Wait for all of them."""
        self.stopping.set()
        for thread in self._threads:
            thread.join()

    def _live(self, number: int) -> None:
        rng = random.Random(f"{self.seed}:{number}")  # noqa: S311 (a torture that can be repeated)
        open_: list[str] = []
        try:
            for n in range(number, self.count, THREADS):
                shape = self.shares[n % len(self.shares)]
                run = f"{shape}-{n}"
                self._surely(functools.partial(self._make, run, shape))
                open_.append(run)
                with self._lock:
                    self.runs[run] = shape
                    self._made += 1
                time.sleep(rng.random() * 2 * self.pace)
                if rng.random() < 0.5:
                    open_ = self._look(open_, rng)
            while open_ and not self.stopping.is_set():
                time.sleep(0.2)
                open_ = self._look(open_, rng)
        except BaseException as error:  # noqa: BLE001 (it is among what was wrong)
            self.failed.append(error)

    def _make(self, run: str, shape: str) -> None:
        try:
            runner.enqueue(self.agent, shape, runs=self.store, run=run)
        except eventlog.RunExists:
            return  # an earlier try was done, and its answer was lost

    def _surely(self, act: Callable[[], object]) -> object:
        """Do it, again and again while the server is lost."""
        while True:
            try:
                return act()
            except (eventlog.DiskFailed, eventlog.LogDead):
                if self.stopping.is_set():
                    raise
                time.sleep(0.1)

    def _look(self, open_: list[str], rng: random.Random) -> list[str]:
        """Say something to some runs, and forget those that are over."""
        left = []
        for run in open_:
            if rng.random() < 0.5:
                left.append(run)
                continue
            state = self._surely(functools.partial(runner.read_state, run, self.store))
            assert isinstance(state, runner.State)
            if state.over:
                continue
            left.append(run)
            shape = self.runs[run]
            is_fork = "." in run
            if rng.random() < 0.15 and not is_fork and (state.waiting or state.turns > 3) and state.seq is not None:
                left += self._fork(run, state.seq, shape)
            elif rng.random() < 0.4 and self._written[run] < MESSAGES:
                self._written[run] += 1
                who = f"Zoe {rng.random():.9f}"
                self._say("message", run, "", who, functools.partial(runner.send, run, who, who, runs=self.store))
            elif state.waiting:
                for who in rng.sample(("Ann", "Bob"), 2):
                    self._answer(run, state.waiting[0], f"{who} {rng.random():.9f}")
            elif shape == "loops" and state.turns > 3:
                who = f"Eve {rng.random():.9f}"
                self._say("stop", run, "", who, functools.partial(runner.stop, run, who, runs=self.store))
        return left

    def _fork(self, run: str, at: int, shape: str) -> list[str]:
        new = f"{run}.f{len(self.runs)}"
        try:
            runner.fork(run, at=at, runs=self.store, new=new, who="Ann")
        except (eventlog.DiskFailed, eventlog.LogDead):
            try:
                self._surely(lambda: runner.read_state(new, self.store))
            except eventlog.NoSuchRun:
                return []
        except (eventlog.LogError, runner.RunError):
            return []
        with self._lock:
            self.runs[new] = shape
            self.forks += 1
        return [new]

    def _answer(self, run: str, question: runner.Question, who: str) -> None:
        """Say yes; of a call whose service was too slow to say what it did, that it was looked after."""
        given = (run, question.id, who)
        act = functools.partial(runner.approve, *given, runs=self.store)
        if question.kind == "settle":
            act = functools.partial(runner.settle, *given, "done", "a person looked", runs=self.store)
        self._say("answer", *given, act)

    def _say(self, kind: Kind, run: str, question: str, who: str, act: Callable[[], runner.Receipt]) -> None:
        came: Literal["written", "left", "refused", "unknown"]
        try:
            came = "written" if act().written else "left"
        except (eventlog.DiskFailed, eventlog.LogDead):
            came = "unknown"
        except (runner.RunError, eventlog.LogError):
            came = "refused"
        with self._lock:
            self.said.append(Said(kind, run, question, who, came))
