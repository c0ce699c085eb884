"""Pause, resume and delete the actions that a filter admits."""

from itertools import groupby
from operator import attrgetter

from models.errors import InvalidDocument, NotFound, Refused
from models.store.actions.search import ActionFilter
from runtime.database import reading
from scheduler.changes import deletion
from services.actions import ActionRow
from services.actions.search import chosen
from services.changes import DryRun, switch
from services.changes.result import Change, Changes, shown
from services.installation import Installation
from services.lookup import find_app
from services.verbs import EDIT, OPERATE, Verb


@Verb("pause_actions", "POST /api/actions:pause", OPERATE)
def pause(
    installation: Installation,
    wanted: ActionFilter,
    *,
    dry_run: DryRun = False,
    all_apps: bool = False,
) -> Changes:
    """Pause the actions that a filter admits; a refused one does not stop the others.

    Raises Refused without a filter, and NotFound for none.
    """
    found = chosen(installation, "pause", wanted, all_apps=all_apps)
    return _switched(installation, found, active=False, dry_run=dry_run)


@Verb("resume_actions", "POST /api/actions:resume", OPERATE)
def resume(
    installation: Installation,
    wanted: ActionFilter,
    *,
    dry_run: DryRun = False,
    all_apps: bool = False,
) -> Changes:
    """Resume the actions that a filter admits; a refused one does not stop the others.

    Raises Refused without a filter, and NotFound for none.
    """
    found = chosen(installation, "resume", wanted, all_apps=all_apps)
    return _switched(installation, found, active=True, dry_run=dry_run)


def _switched(
    installation: Installation, found: list[ActionRow], *, active: bool, dry_run: bool
) -> Changes:
    def switched(one: ActionRow) -> Change:
        try:
            return switch(installation, str(one.uid), None, active=active, dry_run=dry_run)
        except (InvalidDocument, NotFound, Refused) as error:
            return Change(
                uid=one.uid,
                name=one.name,
                change="unchanged",
                revision=one.revision or 0,
                active=one.active,
                refused=error.fact,
            )

    return Changes(tuple(map(switched, found)))


@Verb("delete_actions", "DELETE /api/actions", EDIT)
def delete(
    installation: Installation,
    wanted: ActionFilter,
    *,
    dry_run: DryRun = False,
    all_apps: bool = False,
) -> Changes:
    """Delete the actions that a filter admits; their history stays.

    Raises Refused without a filter, and NotFound for none.
    """
    found = chosen(installation, "delete", wanted, all_apps=all_apps)
    made: list[Change] = []
    for name, its in groupby(sorted(found, key=attrgetter("app")), attrgetter("app")):
        with reading(installation.engine) as connection:
            app = find_app(connection, installation, name)
        uids, remover = [one.uid for one in its], installation.remover_in(app)
        deleted = deletion.delete_many(installation.engine, uids, remover, dry_run=dry_run)
        made += shown(installation, deleted, app)
    return Changes(tuple(made))
