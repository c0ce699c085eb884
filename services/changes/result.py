"""What a change did to each action, as it is shown."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from pydantic import Field

from minutebook.steps import SmallApp
from models.action.plan import Plan
from models.sql import parts_of, read_clock
from runtime.database import reading
from scheduler import changes
from scheduler.changes import Done
from services.installation import Installation
from services.upcoming import Upcoming, upcoming_of
from services.view import Instant, Listing, View
from services.warnings import action_warnings

# Whose next occurrences are read in one transaction: a long one is ended while it is idle.
AT_ONCE = 100
JITTER_TO_COME = "the times are without its jitter, which is chosen when the action is stored"


class Change(View):
    """An action after a change, and what the change did."""

    uid: UUID | None = Field(description="Uid of the action; null if a dry run created it.")
    name: str = Field(description="Name of the action after the change.")
    change: str = Field(description="`created`, `changed`, `unchanged` or `deleted`.")
    revision: int = Field(description="The action's revision now.")
    active: bool = Field(description="Whether it is enabled now.")
    switched: str | None = Field(
        None, description="`paused` or `resumed` if that changed, else null."
    )
    old_name: str | None = Field(None, description="Its name until now, if that was another.")
    sent: tuple[Instant, ...] = Field(
        (), description="Occurrences by the old rule that the change sent."
    )
    missed: int = Field(0, description="Occurrences by the old rule that it recorded as missed.")
    cancelled: int = Field(0, description="Operations that had not started, and never will.")
    warnings: tuple[str, ...] = Field((), description="What its admin should check.")
    before: Upcoming | None = Field(
        None, description="With details: the old rule and its next occurrences, if they change."
    )
    upcoming: Upcoming | None = Field(
        None,
        description="With details: its rules and next occurrences, unless it is one of several"
        " that are unchanged.",
    )
    refused: str | None = Field(None, description="Why it was not changed.")


# What a view takes from a change as it is.
TAKEN = (
    "name",
    "change",
    "revision",
    "active",
    "switched",
    "old_name",
    "sent",
    "missed",
    "cancelled",
)


class Changes(Listing[Change]):
    """What a change of several actions did to each."""

    @property
    def exit_code(self) -> int:
        """1 if some were refused."""
        return int(bool(self.errors))


def shown(
    installation: Installation,
    made: Sequence[changes.Change],
    app: SmallApp | None = None,
    *,
    details: bool = False,
    dry_run: bool = False,
) -> tuple[Change, ...]:
    """Return changes in the request's small app, or in `app`, with their warnings."""
    app = app or installation.small_app
    models = [one.model for one in made if one.model is not None]
    warnings: Iterator[tuple[str, ...]] = iter(())
    if models:
        with reading(installation.engine) as connection:
            warnings = iter(action_warnings(connection, app, models, installation.settings))
    found = []
    kept: dict[int, Upcoming] = {}
    for some in parts_of(made, AT_ONCE if details else len(made) or 1):
        coming: Sequence[tuple[Upcoming | None, Upcoming | None]] = [(None, None)] * len(some)
        if details:
            coming = _upcoming(installation, app, some, kept, is_one=len(made) == 1)
        for one, (before, after) in zip(some, coming, strict=True):
            own = {} if one.model is None else {"warnings": next(warnings)}
            uid = None if dry_run and one.change is Done.CREATED else one.uid
            keys = {key: getattr(one, key) for key in TAKEN}
            view = Change(**keys, **own, uid=uid, before=before, upcoming=after)
            has_offset = uid is not None or not one.plan.has_jitter
            found.append(view if has_offset else _unmoved(installation, app, one, view))
    return tuple(found)


def _unmoved(
    installation: Installation, app: SmallApp, made: changes.Change, shown: Change
) -> Change:
    """Return a change with the occurrences that its rules name: no uid moves them yet."""
    if shown.upcoming is None:
        return shown
    with reading(installation.engine) as connection:
        seen, plan = (read_clock(connection), app.zone), made.plan.without_jitter()
        named = upcoming_of(connection, (app.id, made.uid), plan, seen)
    upcoming = shown.upcoming.model_copy(update={"next": named.next})
    warnings = (*shown.warnings, JITTER_TO_COME)
    return shown.model_copy(update={"upcoming": upcoming, "warnings": warnings})


def _upcoming(
    installation: Installation,
    app: SmallApp,
    made: Sequence[changes.Change],
    kept: dict[int, Upcoming],
    *,
    is_one: bool,
) -> list[tuple[Upcoming | None, Upcoming | None]]:
    """Return the schedules of a few actions before and after a change that made a difference.

    Of an action alone also without one.
    Those of plans that many actions share are `kept`, by their identities.
    """
    with reading(installation.engine) as connection:
        seen = read_clock(connection), app.zone

        def of(one: changes.Change, plan: Plan) -> Upcoming | None:
            if one.change is Done.DELETED or (one.change is Done.UNCHANGED and not is_one):
                return None
            if id(plan) in kept:
                return kept[id(plan)]
            found = upcoming_of(connection, (app.id, one.uid), plan, seen)
            if plan.on_event is None and not plan.depends_on_action:
                kept[id(plan)] = found
            return found

        def before(one: changes.Change) -> Upcoming | None:
            old = one.plan_before
            return None if old is None or old.has_same_occurrences(one.plan) else of(one, old)

        return [(before(one), of(one, one.plan)) for one in made]
