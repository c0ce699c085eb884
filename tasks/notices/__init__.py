"""Deliver a notice: one worker makes one try, then finishes, postpones or abandons the notice."""

import os
from functools import partial
from urllib.parse import quote
from uuid import UUID

import sqlalchemy as sa

from broker.app import app
from broker.in_use import settings_in_use
from minutebook.error_text import text_of
from models.errors import Refused
from models.notices import NoticeKind, shown_target
from models.store import notices
from models.store.notices import Notice
from models.store.notices.alerting import alert_targets
from models.store.tenants import ceilings
from models.store.tenants.ceilings import Ceiling
from models.worker_kinds import DELIVER_NOTICE
from runtime.config import Settings
from runtime.database import DATABASE_AWAY, reading
from runtime.db_retry import persist
from runtime.logs.events import EventLog
from runtime.references import SecretMissing
from tasks.engines import engine_of
from tasks.notices.text import content_of
from tasks.outgoing.failures import Undelivered
from tasks.outgoing.mail.message import Envelope, build_message, parse_address
from tasks.outgoing.mail.transport import open_transport

MAX_TRIES = 8

logger = EventLog("minutebook.notices")


@app.task(name=DELIVER_NOTICE)
def deliver_notice(notice_id: str, number: int) -> str:
    """Make the numbered try to deliver a notice; return the outcome."""
    settings = settings_in_use()
    return deliver(engine_of(os.getpid(), settings), settings, (UUID(notice_id), number))


def deliver(engine: sa.Engine, settings: Settings, message: tuple[UUID, int]) -> str:
    """Make the try named by `message` (id, number), unless it was taken; return the outcome."""
    notice = persist(engine, lambda c: notices.begin(c, *message))
    if notice is None:
        return "taken"
    try:
        _check_ceiling(engine, settings, notice)
        hand_over(notice, settings)
    except Undelivered as error:
        return _not_delivered(engine, notice, error)
    except DATABASE_AWAY:  # not the notice's fault: the sweep repeats it
        raise
    except Exception as error:  # no notice may end the worker's task
        logger.exception("notice_error", "notice {notice}: {target}", notice.id, _where(notice))
        unexpected = Undelivered(text_of(error))
        return _not_delivered(engine, notice, unexpected)
    persist(engine, lambda c: notices.finish(c, notice))
    logger.info(
        "notice_delivered", "notice {notice}: {target} delivered", notice.id, _where(notice)
    )
    return "done"


def _check_ceiling(engine: sa.Engine, settings: Settings, notice: Notice) -> None:
    """Raise Undelivered if the mail of a restricted small app would exceed its ceiling."""
    app = notice.small_app_id
    if notice.target.kind != "mail" or app is None or _is_own(notice, settings):
        return
    try:
        read = partial(ceilings.check, more=1)
        persist(engine, lambda c: read(c, app, Ceiling.MAILS, settings.limits), reading)
    except Refused as error:
        raise Undelivered(str(error)) from None


def _not_delivered(engine: sa.Engine, notice: Notice, error: Undelivered) -> str:
    text = str(error)
    is_last = error.permanent or notice.tries >= MAX_TRIES
    where = _where(notice)
    if is_last:
        logger.error(
            "notice_failed", "notice {notice}: {target} failed: {error}", notice.id, where, text
        )
        persist(engine, lambda c: notices.give_up(c, notice, text))
        return "failed"
    logger.warning(
        "notice_put_off",
        "notice {notice}: {target} not delivered yet: {error}",
        notice.id,
        where,
        text,
    )
    persist(engine, lambda c: notices.put_off(c, notice, text))
    return "put off"


def _where(notice: Notice) -> str:
    return f"{notice.kind} to {shown_target(notice.target)}"


def _is_own(notice: Notice, settings: Settings) -> bool:
    """Return whether the installation itself sends the notice.

    A hook of a small app may name the same target: it goes where the app may.
    """
    is_finding = notice.kind in {NoticeKind.FINDING_BEGAN, NoticeKind.FINDING_ENDED}
    return is_finding and notice.target in alert_targets(settings.alert)


def hand_over(notice: Notice, settings: Settings) -> None:
    """Send a notice once, to its target. Raises Undelivered."""
    is_own = _is_own(notice, settings)
    notice.payload.update(link_of(notice, settings.web.public_url))
    if notice.target.kind == "mail":
        _mail(notice, settings)
    elif notice.target.kind == "notify":
        from tasks.notices.channel import notify

        notify(notice, settings, is_own=is_own)
    else:
        from tasks.notices.webhook import call

        if not is_own and not notice.trust.is_trusted:
            settings = settings.restricted_to(str(notice.payload.get("small_app", "")))
        try:
            call(notice, settings, is_own=is_own)
        except SecretMissing as error:
            # Not permanent: a later try succeeds once the worker has the secret.
            raise Undelivered(str(error)) from None


def _mail(notice: Notice, settings: Settings) -> None:
    """Send a notice as a mail; each try repeats the same message id. Raises Undelivered."""
    sender = settings.mail.sender
    id = f"<{notice.id}@{parse_address(sender).domain}>"
    envelope = Envelope(sender, notice.target.to, None, id, notice.created_at)
    with open_transport(settings) as transport:
        transport.send(build_message(content_of(notice.payload), envelope))


def link_of(notice: Notice, public_url: str) -> dict[str, str]:
    """Return the link to what a notice is about, as people find it; nothing without a setting."""
    told = notice.payload
    if not public_url:
        return {}
    if told.get("operation_id"):
        return {"url": f"{public_url}/operations/{told['operation_id']}"}
    if told.get("action_uid"):
        place = f"/apps/{quote(told['small_app'], safe='')}/actions/{told['action_uid']}"
        return {"url": public_url + place}
    return {"url": f"{public_url}/health"}
