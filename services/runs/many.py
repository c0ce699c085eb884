"""Retry or cancel many operations: those that a filter admits, or those of a list of ids."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field

from models.errors import Hint, Refused
from models.hints import listed
from models.operation import OperationState
from models.store import operations
from models.store.operations import pages
from runtime.database import reading
from scheduler.on_demand import many
from scheduler.on_demand.many import TAKES, USUALLY, ManyChanged, ManyRequest, ManyVerb
from scheduler.on_demand.restart import APPLY_AGAIN, RESUME, RUN_AGAIN
from services.installation import Installation
from services.lookup import operation_of
from services.operations.filter import OperationFilter, wanted_by
from services.verbs import OPERATE, Verb
from services.view import Instant, RequestBody, View

# The most operations of one request.
MOST = 500
# How many are named.
FIRST = 10
FIRST_LEFT_OUT = 3


class Selection(OperationFilter, RequestBody):
    """The operations to change: those of `ids`, or those that the filters admit."""

    ids: tuple[str, ...] = Field((), description="These, whatever the filters; 500 at most.")


class OfAction(View):
    """How many operations of an action were or would be changed."""

    app: str = Field(description="Its small app.")
    uid: UUID = Field(description="Of the action.")
    name: str = Field(description="Name of the action.")
    count: int = Field(description="How many of its operations.")


class FirstOne(View):
    """One of the operations, in short."""

    id: UUID = Field(description="Its id.")
    action: str = Field(description="Name of its action.")
    occurrence_at: Instant = Field(description="The instant at which it was due.")
    state: str = Field(description="Its state now.")


class LeftOut(View):
    """Operations that were or would not be changed, for one reason."""

    why: str = Field(description="The reason.")
    count: int = Field(description="How many.")
    first: tuple[UUID, ...] = Field(description="The ids of the first of them.")


class Bulk(View):
    """What was done to many operations, or would be."""

    verb: ManyVerb = Field(description="What: `retry` or `cancel`.")
    dry_run: bool = Field(description="Whether it is a plan, and nothing was changed.")
    count: int = Field(description="How many operations were or would be changed.")
    actions: tuple[OfAction, ...] = Field(description="Of which actions, the most first.")
    first: tuple[FirstOne, ...] = Field(description="The first of them.")
    ids: tuple[UUID, ...] = Field(description="The ids of all of them.")
    left_out: tuple[LeftOut, ...] = Field(description="What was or would be left out, and why.")
    has_more: bool = Field(description="Whether more match than one request changes.")
    unsent: str | None = Field(None, description="Why the broker has not taken them yet.")
    # False if the command waited for them and not all ended as they should.
    succeeded: bool = Field(True, exclude=True)
    # What it waited for in vain.
    late: tuple[str, ...] = Field((), exclude=True)

    @property
    def errors(self) -> tuple[str, ...]:
        return () if self.dry_run else (*map(left_out_in_words, self.left_out), *self.late)

    @property
    def exit_code(self) -> int:
        """1 if some were left out or did not succeed, 2 if all were left out."""
        if self.dry_run or not self.left_out:
            return int(not self.succeeded)
        return 1 if self.count else 2


def left_out_in_words(one: LeftOut) -> str:
    """Return why operations are left out: `2 left out: it is running; … (0c2f…, 9a01…)`."""
    more, why = ", …" if one.count > len(one.first) else "", one.why
    for hint in (RUN_AGAIN, APPLY_AGAIN, RESUME):
        why = why.replace(hint.page, hint.command)
    return f"{one.count} left out: {why} ({', '.join(map(str, one.first))}{more})"


@Verb("retry_operations", "POST /api/operations:retry", OPERATE)
def retry(
    installation: Installation,
    selection: Selection,
    *,
    dry_run: bool = False,
    all_apps: bool = False,
) -> Bulk:
    """Retry the operations that filters admit, or return the plan of it.

    Without ids and states, only the failed and partial ones.

    Raises NotFound and Refused.
    """
    return _done(installation, ManyVerb.RETRY, selection, dry_run=dry_run, all_apps=all_apps)


@Verb("cancel_operations", "POST /api/operations:cancel", OPERATE)
def cancel(
    installation: Installation,
    selection: Selection,
    *,
    dry_run: bool = False,
    all_apps: bool = False,
) -> Bulk:
    """Cancel the active operations that filters admit, or return the plan of it.

    Raises NotFound and Refused.
    """
    return _done(installation, ManyVerb.CANCEL, selection, dry_run=dry_run, all_apps=all_apps)


def matching(
    installation: Installation, wanted: OperationFilter, most: int = MOST, *, all_apps: bool = False
) -> int:
    """Return how many operations a filter admits; one more than `most` stands for more."""
    with reading(installation.engine) as connection:
        asked = wanted_by(connection, installation, wanted, None, all_apps=all_apps)
        return len(pages.ids_of_page(connection, asked, most + 1))


def _done(
    installation: Installation,
    verb: ManyVerb,
    selection: Selection,
    *,
    dry_run: bool,
    all_apps: bool,
) -> Bulk:
    engine = installation.engine
    request = ManyRequest(verb, installation.scope, installation.actor)
    with reading(engine) as connection:
        ids, has_more = _chosen(connection, installation, verb, selection, all_apps=all_apps)
        if dry_run:
            plan = many.planned(connection, request, ids)
            return _shown(connection, verb, plan, dry_run, has_more)
    installation.publish()
    made, sent = many.change_many(engine, request, ids)
    with reading(engine) as connection:
        shown = _shown(connection, verb, made, dry_run, has_more)
    return shown.model_copy(update={"unsent": installation.why_unsent(sent)})


def _chosen(
    connection: sa.Connection,
    installation: Installation,
    verb: ManyVerb,
    selection: Selection,
    *,
    all_apps: bool,
) -> tuple[Sequence[UUID], bool]:
    """Return the ids that a request is to change, and whether more match."""
    if selection.ids:
        if len(selection.ids) > MOST:
            raise Refused(f"{len(selection.ids)} ids are more than {MOST}; send some at a time")
        named = [operation_of(connection, text, installation.scope) for text in selection.ids]
        return list(dict.fromkeys(named)), False
    wanted = _with_states(verb, selection)
    asked = wanted_by(connection, installation, wanted, None, all_apps=all_apps)
    ids = pages.ids_of_page(connection, asked, MOST + 1)
    return ids[:MOST], len(ids) > MOST


def _with_states(verb: ManyVerb, selection: Selection) -> Selection:
    """Return a selection with the states that a verb takes; raises Refused for others, and none."""
    if not selection.model_dump(exclude={"ids"}, exclude_defaults=True):
        raise Refused(
            f"nothing chooses the runs to {verb}",
            Hint(
                "write ids, or a filter such as --state or --since",
                "select some of the list",
                "send ids, or a filter such as state or since",
            ),
        )
    wrong = [state for state in selection.state if state not in TAKES[verb]]
    if wrong:
        names = [str(state) for state in OperationState if state in TAKES[verb]]
        raise Refused(f"state {str(wrong[0])!r}: {verb} takes {listed(names)}; choose one of these")
    return selection.model_copy(update={"state": selection.state or tuple(USUALLY[verb])})


def _shown(
    connection: sa.Connection,
    verb: ManyVerb,
    made: ManyChanged,
    dry_run: bool,
    has_more: bool,
) -> Bulk:
    changed = made.changed
    rows = {row["id"]: row for row in operations.by_ids(connection, changed)}
    names = ("app", "action_uid", "action_name")
    counts = Counter(tuple(row[name] for name in names) for row in rows.values())
    actions = (
        OfAction(app=app, uid=uid, name=name, count=count)
        for (app, uid, name), count in counts.most_common()
    )
    return Bulk(
        verb=verb,
        dry_run=dry_run,
        count=len(changed),
        actions=tuple(actions),
        first=tuple(_first(rows[id]) for id in changed[:FIRST] if id in rows),
        ids=tuple(changed),
        left_out=_left_out(made.left_out),
        has_more=has_more,
    )


def _first(row: Mapping[str, Any]) -> FirstOne:
    return FirstOne.of(row, action=row["action_name"])


def _left_out(reasons: Mapping[UUID, str]) -> tuple[LeftOut, ...]:
    """Return what was left out by its reasons, the most frequent first."""
    return tuple(
        LeftOut(
            why=why,
            count=count,
            first=tuple(id for id, one in reasons.items() if one == why)[:FIRST_LEFT_OUT],
        )
        for why, count in Counter(reasons.values()).most_common()
    )
