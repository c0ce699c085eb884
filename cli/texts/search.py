"""What a search found, in words."""

from collections.abc import Iterator

from views.operations import OperationRow
from views.search import Found
from views.words import instant


def _found(found: Found) -> Iterator[str]:
    lines = [*_things(found), *_runs(found)]
    yield from lines or (f"nothing has {found.text!r} in it",)
    if found.more:
        yield f"there are more {', '.join(found.more)}; write more of the text"


def _things(found: Found) -> Iterator[str]:
    for action in found.actions:
        yield f"action  {action.name} ({action.app})"
    for task in found.tasks:
        yield f"task    {task.task}, sent by {task.name} ({task.app})"
    for owner in found.owners:
        yield f"owner   {owner.name}: {owner.actions:,} actions"
    for user in found.users:
        yield f"user    {user.id} ({user.app})"


def _runs(found: Found) -> Iterator[str]:
    for one in found.runs:
        yield f"run     {_run(one)}"
    for one in found.errors:
        yield f"error   {_run(one)}: {one.error or one.reason}"


def _run(one: OperationRow) -> str:
    return f"{one.id} of {one.action_name} ({one.app}), {instant(one.occurrence_at)}, {one.state}"


FORMS = {Found: _found}
