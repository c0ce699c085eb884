"""What reaches a world through web: workers of an application, and workers of jobs."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

from models.errors import LeaseLost, SchedulerError
from models.job import JOB
from models.store import workers
from models.store.operations.external_send import Handed
from models.store.operations.external_worker import key_of
from models.store.operations.jobs import Offer
from models.store.operations.take import ClaimRequest
from runtime.database import DATABASE_AWAY
from services import followers
from services.followers.documents import Beat, EndReport, TakeRequest
from services.installation import Installation
from services.jobs import claim, work
from tests.worlds.stage import APPLICATION

if TYPE_CHECKING:
    from tests.worlds.world import World

T = TypeVar("T")

TASK = "shop.order"
JOBS = "quick"
# An answer that did not come.
NO_ANSWER = (*DATABASE_AWAY, ConnectionError)
# How often an answer is asked for again, each two seconds.
MOST_TRIES = 300


class Outside:
    """The processes that reach the database through web alone."""

    def __init__(self, world: "World") -> None:
        self.world, self.loom = world, world.loom
        self.web = Installation()
        self.web.__dict__ |= {"settings": world.settings, "engine": world.engine}
        self.follower = followers.Follower(self.web, ("*",))

    def link(self, *_: object) -> SimpleNamespace:
        """Return what stands for the connection to the application's broker."""
        return SimpleNamespace(ping=self._reach, send=self._send, connection=None)

    def _reach(self) -> None:
        self.loom.pause("ping")
        if self.world.faults.is_away("broker") or self.world.faults.is_away("publishing"):
            raise ConnectionRefusedError("the broker takes nothing")

    def _send(self, one: Handed) -> None:
        self._reach()
        self.world.post.take(APPLICATION, one)
        if self.world.faults.strikes("answer of broker lost"):
            raise ConnectionResetError("the broker did not answer")

    def web_lives(self) -> None:
        """Be seen every few seconds, as a web process is."""
        while True:
            if not self.world.faults.is_away("web"):
                with suppress(*DATABASE_AWAY), self.world.engine.begin() as connection:
                    workers.web_seen(connection, self.world.settings.worker.lease)
                with suppress(*DATABASE_AWAY):
                    claim.note_queues(self.web, "web", 1, {JOBS})
            self.loom.pause("be seen", 5.0)

    # Workers of the application

    def follow(self) -> None:
        """Take, keep and end tasks over HTTP, as a follower does."""
        while True:
            seen = workers.Heartbeat(self.loom.name, APPLICATION, 1, follows=(TASK,))
            with suppress(*DATABASE_AWAY), self.world.engine.begin() as connection:
                workers.beat(connection, seen)
            letter = self.world.post.deliver({APPLICATION})
            if letter is None:
                self.loom.pause("look again", 2.0)
                continue
            # An operation that it must not run, or not yet.
            with suppress(SchedulerError, *DATABASE_AWAY):
                self._follow(letter.message)

    def _follow(self, one: Handed) -> None:
        random, id = self.loom.random, str(one.id)
        asked = TakeRequest(
            attempt=one.attempt, delivery=random.randbytes(8).hex(), worker=self.loom.name
        )
        taken = self._asked(lambda: followers.take(self.follower, id, asked))
        report = partial(self._report, id, one.attempt, taken.lease)
        self._note(id, one.attempt, "celery_task", "start")
        for _ in range(random.choice((0, 0, 1, 3))):
            self.loom.pause("work", random.uniform(0.1, 5.0))
            beat = Beat(lease=taken.lease)
            with suppress(*NO_ANSWER):
                if self._once(lambda: followers.beat(self.follower, id, beat)).stop:  # noqa: B023
                    return report("stopped", outcome="cancelled")
        if random.random() < 0.8:
            return report("end", outcome="success")
        return report("fail", outcome="failed", error="no")

    def _report(self, id: str, attempt: int, lease: str, what: str, **its: Any) -> None:
        self._note(id, attempt, "celery_task", what)
        ended = EndReport(lease=lease, **its)
        self._asked(lambda: followers.end(self.follower, id, ended))

    # Workers of jobs

    def mind_jobs(self) -> None:
        """Take jobs over HTTP and do them, in any language."""
        while True:
            taken = None
            with suppress(SchedulerError, *NO_ANSWER):
                offers = self._once(lambda: claim.offers(self.web, {(None, JOBS): 1}))
                taken = self._take([one for lane in offers.values() for one in lane])
            if taken is None:
                self.loom.pause("look again", 2.0)
                continue
            with suppress(SchedulerError, *DATABASE_AWAY):
                self._do(taken)

    def _take(self, offers: list[Offer]) -> claim.JobToDo | None:
        if not offers:
            return None
        wanted = ClaimRequest(offers[0].id, offers[0].attempt, self.loom.name)
        return self._once(lambda: claim.take(self.web, wanted))

    def _do(self, job: claim.JobToDo) -> None:
        random, key = self.loom.random, key_of(job.lease)
        note = partial(self._note, str(key.id), key.attempt, JOB)
        note("start")
        for _ in range(random.choice((0, 0, 1, 3))):
            self.loom.pause("work", random.uniform(0.1, 5.0))
            with suppress(*NO_ANSWER):
                try:
                    standing = self._once(lambda: work.keep(self.web, job.id, job.lease, {}))
                except LeaseLost:
                    return
                if standing.stop:
                    note("stopped")
                    self._asked(self._failing(job, standing.stop))
                    return
        if random.random() < 0.7:
            note("end")
            self._asked(lambda: work.complete(self.web, job.id, job.lease, {}))
            return
        note("fail")
        self._asked(self._failing(job, "no"))

    def _failing(self, job: claim.JobToDo, why: str) -> Callable[[], None]:
        return lambda: work.fail(self.web, job.id, job.lease, why, permanent=False)

    def _note(self, id: str, attempt: int, step: str, what: str) -> None:
        self.world.crew.line(id, attempt, step, what, repeatable=True)

    def _asked(self, ask: Callable[[], T]) -> T:
        """Return the answer of web, which is asked again while it is away."""
        for _ in range(MOST_TRIES):
            with suppress(*NO_ANSWER):
                return self._once(ask)
            self.loom.pause("ask again", 2.0)
        raise SchedulerError("web is away for ten minutes")

    def _once(self, ask: Callable[[], T]) -> T:
        self.loom.pause("ask")
        if self.world.faults.is_away("web"):
            raise ConnectionRefusedError("web is away")
        answer = ask()
        if self.world.faults.strikes("answer of web lost"):
            raise ConnectionResetError("web did not answer")
        return answer
