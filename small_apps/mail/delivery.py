"""One message to each recipient of an operation: what both mail steps do."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from minutehand.steps import Recipient, StepFailed, StepResult
from models.errors import LeaseLost
from models.store.operations import running
from runtime.database import reading
from small_apps.mail.delivery_report import Report, result_of
from small_apps.mail.failures import MailRefused, MailServerFailed
from small_apps.mail.message import (
    Content,
    Envelope,
    InvalidAddress,
    build_message,
    parse_address,
    unsubscribe_url,
)
from small_apps.mail.rate_limit import Pace
from small_apps.mail.templates import InvalidTemplate
from small_apps.mail.transport import Transport, open_transport
from small_apps.step_context import WorkContext
from small_apps.store import deliveries
from small_apps.store.deliveries import Delivery, Reserved


def deliver(context: WorkContext, step: str, compose: Callable[[Recipient], Content]) -> StepResult:
    """Send each recipient what `compose` says; return the step's result.

    Passed over are those who are on record as having had it, and those whose address was refused
    for good by an earlier attempt, unless they have another one now. Some refused: partial. Raises
    StepFailed when nobody could be served, when the server went away half-way or put some off (a
    next attempt sends to the rest), or when the sender or the template cannot be used.
    """
    domain = _sender_domain(context.settings.mail.sender)
    with reading(context.engine) as connection:
        settled = deliveries.settled(connection, context.operation_id, step)
    report = Report(had_it=sorted(settled.had_it))
    report.without_address = [one.id for one in context.recipients if not one.address]
    waiting = []
    for one in _each_once([r for r in context.recipients if r.address]):
        address, error = settled.refused.get(one.id, (None, ""))
        if address == one.address:
            report.refused[one.id] = error
        elif one.id not in settled.had_it:
            waiting.append(one)
    report.wanted, report.refused_before = len(waiting), len(report.refused)
    with open_transport(context.settings) as transport:
        sending = _Sending(context, step, compose, transport, domain)
        try:
            _send_all(sending, waiting, report)
        finally:
            sending.record()
        report.told = transport.told(len(report.sent))
    return result_of(report, context.attempts_left)


@dataclass
class _Sending:
    context: WorkContext
    step: str
    compose: Callable[[Recipient], Content]
    transport: Transport
    domain: str
    # What the server took and no record tells yet: it is written with the next reservation.
    _taken: Delivery | None = None

    def send(self, recipient: Recipient) -> bool:
        """Send to one; False when another attempt did. Raises MailRefused, MailServerFailed."""
        content = self.compose(recipient)
        delivery = Delivery(self.context.operation_id, self.step, recipient.id)
        reserved = self._reserve(delivery, recipient)
        if reserved is None:
            return False
        try:
            envelope = self._envelope(recipient, reserved)
            self.transport.send(build_message(content, envelope))
        except InvalidAddress as error:
            self._mark_failed(delivery, str(error), is_permanent=True)
            raise MailRefused(str(error), permanent=True) from None
        except MailRefused as error:
            self._mark_failed(delivery, str(error), is_permanent=error.permanent)
            raise
        except MailServerFailed as error:
            # However permanent: it is the settings that have to change, not the address.
            self._mark_failed(delivery, str(error), is_permanent=False)
            raise
        self._taken = delivery
        return True

    def record(self) -> None:
        """Write that the last message was taken, where that is not written yet."""
        if self._taken is not None:
            with self.context.engine.begin() as connection:
                deliveries.mark(connection, self._taken, "sent")
            self._taken = None

    def _reserve(self, delivery: Delivery, recipient: Recipient) -> Reserved | None:
        """Note what was taken and what is sent next. Raises LeaseLost, the former noted."""
        reserved, lost = None, None
        address, proposed = recipient.address or "", self._id_for(recipient)
        with self.context.engine.begin() as connection:
            if self._taken is not None:
                deliveries.mark(connection, self._taken, "sent")
            try:
                # Only the attempt that owns the operation may send.
                running.beat(connection, self.context.operation_id, self.context.attempt)
            except LeaseLost as error:
                lost = error
            else:
                reserved = deliveries.reserve(connection, delivery, address, proposed)
        self._taken = None
        if lost is not None:
            raise lost
        return reserved

    def _envelope(self, recipient: Recipient, reserved: Reserved) -> Envelope:
        mail, app = self.context.settings.mail, self.context.small_app.name
        way_out = unsubscribe_url(mail.unsubscribe, recipient.id, app)
        return Envelope(
            mail.sender, recipient.address or "", recipient.name, *reserved,
            mail.reply_to, way_out,
        )  # fmt: skip

    def _id_for(self, recipient: Recipient) -> str:
        who = sha256(recipient.id.encode()).hexdigest()[:16]
        return f"<{self.context.operation_id}.{self.step}.{who}@{self.domain}>"

    def _mark_failed(self, delivery: Delivery, error: str, *, is_permanent: bool) -> None:
        with self.context.engine.begin() as connection:
            deliveries.mark(connection, delivery, "failed", error, is_permanent=is_permanent)


def _send_all(sending: _Sending, waiting: Sequence[Recipient], report: Report) -> None:
    context = sending.context
    pace = Pace(context.settings.mail.rate)
    for done, recipient in enumerate(waiting):
        context.progress(done, len(waiting), phase="send")
        if not pace.is_due:
            sending.record()
        if not pace.wait(context.should_stop):
            report.stopped = True
            return
        try:
            is_new = sending.send(recipient)
        except InvalidTemplate as error:
            raise StepFailed(str(error), permanent=True) from None
        except MailRefused as error:
            report.add(recipient.id, error)
        except MailServerFailed as error:
            report.cut_short = error
            return
        else:
            (report.sent if is_new else report.had_it).append(recipient.id)
    context.progress(len(waiting), len(waiting), phase="send")


def _each_once(recipients: list[Recipient]) -> list[Recipient]:
    return list({recipient.id: recipient for recipient in recipients}.values())


def _sender_domain(sender: str) -> str:
    try:
        domain = parse_address(sender).domain
    except InvalidAddress as error:
        raise StepFailed(f"SCHED_MAIL_SENDER: {error}", permanent=True) from None
    return re.sub(r"[^A-Za-z0-9.-]", "-", domain)
