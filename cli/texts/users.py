"""Users and their events in words."""

from collections.abc import Iterator

from cli.render import listing, rows_of, sentence
from models.values import counted
from services.users import AddedUser, DeletedUser, ImportedUsers, User, Users
from services.users.events import SentEvent
from services.words import instant

COLUMNS = "id email status groups created_at last_seen_at"


def _added(one: AddedUser) -> Iterator[str]:
    yield f"added user {one.id} <{one.email}>"
    yield from _never_activated(int(not one.is_activated))


def _imported(done: ImportedUsers) -> Iterator[str]:
    yield f"{counted(done.created, 'user')} created, {done.updated} updated"
    yield from _never_activated(done.never_activated)


def _never_activated(count: int) -> Iterator[str]:
    if count:
        yield (
            f"  warning: users without activated_at: {count}; actions leave them out"
            " unless they include_inactivated_users"
        )


def _sent(one: SentEvent) -> Iterator[str]:
    what = one.event if one.id is None else f"{one.event} {one.id}"
    match one.change:
        case "sent":
            yield f"sent {what} of {one.user}, {instant(one.at)}"
        case "known":
            yield f"{what} already exists; nothing changed"
        case _:
            yield f"{what} of {one.user} is {instant(one.at)} already; nothing changed"


FORMS = {
    Users: listing(COLUMNS),
    User: lambda one: [rows_of((one,), COLUMNS)],
    DeletedUser: sentence("deleted user {id}"),
    AddedUser: _added,
    ImportedUsers: _imported,
    SentEvent: _sent,
}
