"""What every kind of rule in `when` answers: what is parsed is what decides.

One class is one kind: its keys, its occurrences, its words and its warnings. The kinds of the clock
are in `rules`, those on events in `event_rules`; `when.KINDS` names them all.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self
from uuid import UUID

from pydantic import Field

from models.action.exceptions import Closed, Except, Exceptions
from models.action.policy import LOOK_BACK
from models.action.schedule import MOST_CLOSED, NO_UID, Excepting, Schedule
from models.document import Document
from models.parsing import Reading
from models.values import Zone


class RuleModel(Document):
    """When an action is due."""

    # Whether an event makes it due, not the clock.
    is_on_event: ClassVar[bool] = False
    # Whether it knows only the years 1970 to 2199.
    has_years: ClassVar[bool] = False

    @property
    def look_back(self) -> timedelta:
        """The look-back of an action whose policy has none: five minutes, unless a kind differs."""
        return LOOK_BACK

    @property
    def zone(self) -> str | None:
        """The zone in which its instants are shown; None: the small app's."""
        return None

    @property
    def closed(self) -> Closed | None:
        """The times that its `except` leaves out; None for a rule without one."""
        return None

    def every_occurrence(self, uid: UUID) -> Schedule:
        """Return the occurrences for the action `uid`, as if there were no exceptions."""
        raise NotImplementedError

    def schedule(self, uid: UUID) -> Schedule:
        """Return the occurrences for the action `uid`."""
        every, closed = self.every_occurrence(uid), self.closed
        return every if closed is None else Excepting(every, closed.blackout)

    def leaves_some(self, now: datetime) -> bool:
        """Return whether the exceptions leave an occurrence after `now`, found soon.

        Only half as many closed times are searched as later, so that a stored rule stays due.
        """
        every = self.every_occurrence(NO_UID)
        if self.closed is None or every.next(now) is None:
            return True
        return Excepting(every, self.closed.blackout, MOST_CLOSED // 2).next(now) is not None

    def resolved(self) -> Self:
        """Return the rule as a plan keeps it: without names of calendars and ways of writing."""
        if self.closed is None:
            return self
        return self.model_copy(update={"except_": Exceptions(None, self.closed)})

    def words(self, zone: str) -> str:
        """Return the rule in words; instants without a zone of its own are shown in `zone`."""
        raise NotImplementedError

    def words_for(self, uid: UUID, zone: str) -> str:  # noqa: ARG002 - few kinds need it
        """Return the rule in words for the action `uid`, NO_UID for one that is not stored."""
        return self.words(zone)

    def warnings(self, zone: str) -> Iterator[str]:  # noqa: ARG002 - few kinds need it
        """Yield what its admin should check; `zone` is the small app's."""
        return iter(())


class Excepted(RuleModel):
    """A rule whose `except` needs a zone (default: the small app's, stored only with `except`).

    An interval reads its `starting_at` in it, too.
    """

    timezone: Zone | None = None
    except_: Except = Field(None, alias="except")

    @classmethod
    def completed(cls, raw: dict[str, Any], reading: Reading, /) -> dict[str, Any]:
        """Return `raw` with the small app's zone if it has exceptions and no zone."""
        return {"timezone": reading.default_zone, **raw} if "except" in raw else raw

    @property
    def closed(self) -> Closed | None:
        """The times that its `except` leaves out."""
        return None if self.except_ is None else self.except_.closed
