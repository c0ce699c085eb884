"""Send a test to whom a hook would tell."""

from uuid import uuid4

from pydantic import Field

from models.errors import Refused
from models.notices import NoticeKind, Target, shown_target
from models.sql import read_clock
from models.store import tenants
from models.store.notices import Notice
from models.store.tenants import ceilings
from models.store.tenants.ceilings import Ceiling
from runtime.database import reading
from services.installation import Installation
from services.view import View
from tasks.notices import hand_over
from tasks.outgoing.failures import Undelivered

REASON = "a test: nothing ran"


class TriedHook(View):
    """A test that was taken."""

    to: str = Field(description="Whom it told, without what may be secret.")


def send_test(installation: Installation, action: str, target: Target) -> TriedHook:
    """Tell a target of a success of an action that did not run, from this machine.

    The small app needs the trust that the hook would need; the test counts towards its ceiling of
    mails, and stands in the audit trail. Raises Refused with why it was not taken.
    """
    app, shown = installation.small_app, shown_target(target)
    with reading(installation.engine) as connection:
        trust, now = tenants.trust_of(connection, app.id), read_clock(connection)
    _note(installation, shown)
    told = {"kind": NoticeKind.RUN_ENDED, "small_app": app.name, "action": action}
    payload = {**told, "state": "success", "reason": REASON, "test": True}
    notice = Notice(uuid4(), 1, NoticeKind.RUN_ENDED, target, payload, now, app.id, trust)
    try:
        hand_over(notice, installation.settings)
    except Undelivered as error:
        raise Refused(f"the test was not taken: {error}") from None
    return TriedHook(to=shown)


def _note(installation: Installation, shown: str) -> None:
    """Write a test to the audit trail; raises Refused beyond the small app's ceiling of mails."""
    app, limits = installation.small_app, installation.settings.limits
    with installation.engine.begin() as connection:
        ceilings.left(connection, app.id, Ceiling.MAILS, limits)
        installation.audit(connection, app.id, "hook.test", {shown: None})
