"""Channels that the settings name, and tests of them and of hooks."""

from uuid import uuid4

from pydantic import Field

from models.errors import NotFound, Refused
from models.hints import listed
from models.notices import NoticeKind, Target, shown_target
from models.sql import read_clock
from models.store import tenants
from models.store.notices import Notice
from models.store.tenants import ceilings
from models.store.tenants.ceilings import Ceiling
from runtime.database import reading
from services.installation import Installation
from services.verbs import ADMINISTER, READ, Verb
from services.view import Listing, View
from tasks.notices import hand_over
from tasks.notices.channel import send, setting_of
from tasks.outgoing.failures import Undelivered
from tasks.outgoing.mail.message import Content

TITLE = "[minutebook] test"
TEXT = "This is a test: Minutebook can notify this channel."


class Channel(View):
    """A channel that hooks may notify."""

    name: str = Field(description='Its name, as in `{"notify": "ops"}`.')


class Channels(Listing[Channel]):
    """All channels, by name."""


class Tested(View):
    """A channel that took a test message."""

    name: str = Field(description="Its name.")


@Verb("list_channels", "GET /api/channels", READ, is_of_installation=True)
def list_all(installation: Installation) -> Channels:
    """List the channels that the settings name."""
    return Channels(tuple(Channel(name=name) for name in sorted(installation.settings.notify)))


@Verb("test_channel", "POST /api/channels/{name}/test", ADMINISTER, is_of_installation=True)
def test(installation: Installation, name: str) -> Tested:
    """Send a test message to a channel.

    Raises NotFound, and Refused if the service did not take it.
    """
    known = installation.settings.notify
    if name not in known:
        names = listed(sorted(known)) if known else "none"
        raise NotFound(f"there is no channel {name!r} ({names}); set {setting_of(name)} to its URL")
    try:
        content = Content(TITLE, TEXT)
        send(name, content, "minutebook-test", installation.settings, is_good=True)
    except Undelivered as error:
        raise Refused(str(error)) from None
    return Tested(name=name)


REASON = "a test: nothing ran"


class TriedHook(View):
    """A test that was taken."""

    to: str = Field(description="Whom it told, without what may be secret.")


def try_hook(installation: Installation, action: str, target: Target) -> TriedHook:
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
        ceilings.check(connection, app.id, Ceiling.MAILS, limits, 1)
        installation.audit(connection, app.id, "hook.test", {shown: None})
