"""Send a test to whom a hook would tell."""

from uuid import uuid4

from pydantic import Field

from models.errors import Refused
from models.limits import tested_enough
from models.notices import NoticeKind, Target, shown_target
from models.sql import read_clock
from models.store import tenants
from models.store.notices import Notice
from models.store.usage import Used, spend
from runtime.database import reading
from tasks.notices import hand_over
from tasks.notices.undelivered import Undelivered
from views.installation import Installation
from views.view import View

REASON = "a test: nothing ran"


class TriedHook(View):
    """A test that was taken."""

    to: str = Field(description="Whom it told, without what may be secret.")


def send_test(installation: Installation, action: str, target: Target) -> TriedHook:
    """Tell a target of a success of an action that did not run, from this machine.

    It needs the grants that the hook would need, counts towards the small app's messages a minute,
    and stands in the audit trail. Raises Refused with why it was not taken.
    """
    app, shown = installation.small_app, shown_target(target)
    with reading(installation.engine) as connection:
        grants, now = tenants.grants_of(connection, app.id), read_clock(connection)
    _note(installation, shown)
    told = {"kind": NoticeKind.SUCCESS, "action": action, "small_app": app.name, "reason": REASON}
    payload = {**told, "state": "success", "test": True}
    notice = Notice(uuid4(), 1, NoticeKind.SUCCESS, target, payload, now, grants)
    try:
        hand_over(notice, installation.settings)
    except Undelivered as error:
        raise Refused(f"the test was not taken: {error}") from None
    return TriedHook(to=shown)


def _note(installation: Installation, shown: str) -> None:
    """Count a test and write it to the audit trail; raises Refused beyond the limit."""
    app, most = installation.small_app, installation.settings.limits.messages
    with installation.engine.begin() as connection:
        if not spend(connection, app.id, Used.MESSAGES, 1, most):
            raise Refused(tested_enough(most))
        installation.audit(connection, app.id, "hook.test", {shown: None})
