"""What every kind of rule in `when` answers: what is parsed is what decides.

One class is one kind: its keys, its occurrences, its words and its warnings. The kinds of the clock
are in `rules`, those on events in `event_rules`; `when.KINDS` names them all.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self
from uuid import UUID

from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from models.action.exceptions import Closed, Except
from models.action.policy import AS_ISO, LOOK_BACK
from models.action.schedule import MOST_CLOSED, NO_UID, Drawn, Excepting, Moved, Schedule
from models.document import Document
from models.fingerprint import jitter_offset
from models.parsing import Calendars, Reading, reading_of
from models.values import Flag, Zone
from models.values.durations import parse_span, span_in_words
from models.values.zones import EPOCH

LONGEST_INTERVAL = timedelta(days=3660)
NOTHING = timedelta(0)
Spread = Annotated[
    timedelta, BeforeValidator(partial(parse_span, least=NOTHING, most=LONGEST_INTERVAL)), AS_ISO
]


class RuleModel(Document):
    """When an action is due."""

    # Whether an event makes it due, not the clock.
    is_on_event: ClassVar[bool] = False
    # Whether ends of the action's own operations make it due.
    is_from_end: ClassVar[bool] = False
    # Whether it knows only the years 1970 to 2199.
    has_years: ClassVar[bool] = False

    @property
    def depends_on_action(self) -> bool:
        """Whether its instants depend on the uid of its action."""
        return False

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
        """The days that its `except` leaves out; None for a rule without one."""
        return getattr(self, "except_", None)

    def with_calendars(self, calendars: Calendars) -> Self:
        """Return the rule that leaves out the dates of its calendars as they are now."""
        if self.closed is None or not self.closed.calendars:
            return self
        return self.model_copy(update={"except_": self.closed.with_calendars(calendars)})

    def every_occurrence(self, uid: UUID) -> Schedule:
        """Return the occurrences for the action `uid`, as if there were no exceptions."""
        raise NotImplementedError

    @property
    def jitter_words(self) -> str:
        """What its jitter adds to its words; empty without any."""
        return ""

    def schedule(self, uid: UUID) -> Schedule:
        """Return the occurrences for the action `uid`."""
        every, closed = self.every_occurrence(uid), self.closed
        named = every if closed is None else Excepting(every, closed.blackout)
        return self.moved(named, every, uid)

    def moved(self, named: Schedule, every: Schedule, uid: UUID) -> Schedule:  # noqa: ARG002
        """Return the occurrences for instants that the rule names; `every` has the excepted too."""
        return named

    def named_for(self, uid: UUID, at: datetime) -> datetime:  # noqa: ARG002 - few kinds need it
        """Return the instant that the rule names for an occurrence at `at`, except or not."""
        return at

    def without_jitter(self) -> Self:
        """Return the rule whose occurrences are the instants that it names."""
        return self

    def leaves_some(self, now: datetime) -> bool:
        """Return whether the exceptions leave an occurrence after `now`, found soon.

        Only half as many closed days are searched as later, so that a stored rule stays due.
        """
        every = self.every_occurrence(NO_UID)
        if self.closed is None or every.next(now) is None:
            return True
        return Excepting(every, self.closed.blackout, MOST_CLOSED // 2).next(now) is not None

    def resolved(self) -> Self:
        """Return the rule as a plan keeps it: without ways of writing."""
        return self

    def words(self, zone: str) -> str:
        """Return the rule in words; instants without a zone of its own are shown in `zone`."""
        raise NotImplementedError

    def warnings(self, zone: str) -> Iterator[str]:  # noqa: ARG002 - few kinds need it
        """Yield what its admin should check; `zone` is the small app's."""
        return iter(())


class Begun(RuleModel):
    """A rule that counts from its `starting_at`; without one, from the action's creation.

    Only the plan keeps the creation as `starting_at`: the document leaves it out.
    """

    if TYPE_CHECKING:
        # Each kind declares it behind the zone that it is read in.
        starting_at: datetime | None
    _created_at: datetime | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _note_creation(self, info: ValidationInfo) -> Self:
        if self.starting_at is None:
            reading = reading_of(info)
            at = reading.created_at or reading.now
            self._created_at = at and at.replace(microsecond=0)
        return self

    @property
    def begins_at(self) -> datetime:
        """The instant that it counts from."""
        return self.starting_at or self.after_creation(self._created_at or EPOCH)

    def after_creation(self, created_at: datetime) -> datetime:
        """Return the instant that a rule without `starting_at` counts from."""
        return created_at

    def resolved(self) -> Self:
        """Return the rule with the instant that it counts from, if that is known."""
        found = super().resolved()
        return found if self._created_at is None else found.begun(self._created_at)

    def begun(self, created_at: datetime) -> Self:
        """Return the rule that counts from the action's creation."""
        found = self.model_copy(update={"starting_at": self.after_creation(created_at)})
        found._created_at = None
        return found


class Jittered(RuleModel):
    """A rule whose occurrences are moved by an offset in [0, jitter).

    The offset is fixed by the action's uid or, with `jitter_each`, drawn for each occurrence by a
    hash of uid and instant. `except` is about the instants that the rule names.
    """

    jitter: Spread = NOTHING
    jitter_each: Flag = False

    @property
    def depends_on_action(self) -> bool:
        """Whether it has a jitter, whose offset is that of the action."""
        return bool(self.jitter)

    @field_validator("jitter_each")
    @classmethod
    def _from_a_span(cls, is_drawn: bool, info: ValidationInfo) -> bool:
        if is_drawn and info.data.get("jitter") == NOTHING:
            raise ValueError('needs the span to draw from; write "jitter": "PT5M" beside it')
        return is_drawn

    @property
    def jitter_words(self) -> str:
        """What its jitter adds to its words."""
        if not self.jitter:
            return ""
        how = "drawn for each run" if self.jitter_each else "fixed for this action"
        return f", plus up to {span_in_words(self.jitter)}, {how}"

    def moved(self, named: Schedule, every: Schedule, uid: UUID) -> Schedule:
        """Return the occurrences for instants that the rule names."""
        if not self.jitter:
            return named
        if self.jitter_each:
            return Drawn(named, every, uid, self.jitter)
        return Moved(named, jitter_offset(uid, self.jitter))

    def named_for(self, uid: UUID, at: datetime) -> datetime:
        """Return the instant that the rule names for an occurrence at `at`, except or not."""
        if not self.jitter_each:
            return at - jitter_offset(uid, self.jitter)
        every = self.every_occurrence(uid)
        return Drawn(every, every, uid, self.jitter).nominal(at) or at

    def without_jitter(self) -> Self:
        """Return the rule whose occurrences are the instants that it names."""
        return self.model_copy(update={"jitter": NOTHING})


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
