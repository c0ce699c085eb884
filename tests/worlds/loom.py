"""One thread of many actors: each runs real code until it pauses, and the world says who goes on.

An actor is a greenlet. It pauses before each transaction, before each effect outside the database,
and where it would sleep. Nothing else interrupts it, so whatever happens in a world is a list of
steps that its seed repeats.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from greenlet import (  # type: ignore[import-untyped]
    GreenletExit,
    getcurrent,
    greenlet,
)

Act = Callable[[], None]


@dataclass(eq=False)
class Actor:
    """A process of the world: its name, what it does, and when it may go on."""

    name: str
    act: Act
    wakes_at: datetime
    # By how much the clock of its machine is ahead.
    skew: timedelta = timedelta(0)
    # The number of its tz release.
    release: int = 0
    # What kind of process it is.
    role: str = field(init=False)
    thread: greenlet = field(init=False)
    # What it is about to do.
    step: str = "start"
    is_killed: bool = False

    def __post_init__(self) -> None:
        self.role = self.name.split()[0]
        self.thread = greenlet(self.act)

    @property
    def is_alive(self) -> bool:
        return not (self.is_killed or self.thread.dead)

    def kill(self) -> None:
        """Let it never go on."""
        self.is_killed = True


class Loom:
    """The actors of a world and its clock, which moves only if nobody can go on now."""

    def __init__(self, random: Random, now: datetime) -> None:
        self.random, self.now = random, now
        self.begun_at = now
        self.actors: list[Actor] = []
        self.steps = 0
        # Of the machines of those that start.
        self.skew = timedelta(0)
        # The newest tz release.
        self.release = 0
        # Whether the running actor may be interrupted: not within a transaction.
        self.may_pause: Callable[[], bool] = lambda: True
        # What ends with an actor that was killed, such as its session.
        self.at_death: Callable[[Actor], None] = lambda _actor: None
        self.is_over = False
        self.actor: Actor | None = None
        # Who took the last step, and which.
        self.last = ""
        self._home = getcurrent()
        # A killed process does nothing more, not even its cleanup: it is kept to the end.
        self._graves: list[Actor] = []

    @property
    def name(self) -> str:
        return "" if self.actor is None else self.actor.name

    @property
    def elapsed_s(self) -> float:
        """The seconds since the world began, by the clock that is never set."""
        return (self.now - self.begun_at).total_seconds()

    def later(self, seconds: float) -> datetime:
        return self.now + timedelta(seconds=seconds)

    def start(self, name: str, act: Act, within_s: float = 0.0) -> Actor:
        """Add an actor that begins some time from now."""
        wakes_at = self.later(self.random.uniform(0.0, within_s))
        actor = Actor(name, act, wakes_at, self.skew, self.release)
        self.actors.append(actor)
        return actor

    def pause(self, step: str, seconds: float = 0.0) -> None:
        """Let others go on before the running actor takes its next step."""
        if self.is_over:
            raise GreenletExit
        actor = self.actor
        if actor is None:
            return
        assert self.may_pause(), f"{actor.name} pauses within a transaction to {step}"
        actor.step, actor.wakes_at = step, self.later(seconds)
        self._home.switch()
        if self.is_over or actor.is_killed:
            raise GreenletExit

    def die(self) -> None:
        """End the running actor here, as SIGKILL would."""
        assert self.actor is not None
        self.actor.kill()
        self._home.switch()

    def go_on(self, until: datetime) -> bool:
        """Let one actor take its next step; return False if none can before `until`.

        Time jumps to the next actor that wakes up, or to `until`, if none can go on now.
        """
        self._bury()
        first = min((one.wakes_at for one in self.actors), default=until)
        self.now = max(self.now, min(first, until))
        ready = [one for one in self.actors if one.wakes_at <= self.now]
        if not ready:
            return False
        self.steps += 1
        self.actor = self.random.choice(ready)
        self.last = f"{self.actor.name}, {self.actor.step}"
        self.actor.thread.switch()
        self.actor = None
        return True

    def end(self) -> None:
        """End the world: what still hangs in it is thrown away."""
        self.is_over = True
        for actor in [*self.actors, *self._graves]:
            if not actor.thread.dead:
                actor.thread.throw()
        self.actors, self._graves = [], []

    def _bury(self) -> None:
        dead = [one for one in self.actors if not one.is_alive]
        for one in dead:
            self.at_death(one)
        self._graves += dead
        self.actors = [one for one in self.actors if one.is_alive]
