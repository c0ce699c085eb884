"""Delivery of one message to each recipient of an operation, for all mail steps."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Event

from data.mail.delivery_report import Report, result_of
from data.mail.templates import InvalidTemplate
from data.store import deliveries
from data.store.deliveries import Delivery, Reserved
from minutebook.steps import Recipient, StepFailed, StepResult
from models.errors import LeaseLost, Refused
from models.store.operations import heartbeat
from models.store.tenants import ceilings
from models.store.tenants.ceilings import Ceiling
from runtime.clock import monotonic
from runtime.database import reading
from tasks.bounded.limits import OverLimit
from tasks.outgoing.failures import MailRefused, MailServerFailed
from tasks.outgoing.mail.message import (
    Content,
    Envelope,
    InvalidAddress,
    build_message,
    parse_address,
)
from tasks.outgoing.mail.transport import Transport, open_transport
from tasks.step_context import WorkContext

# The delay until a wait notices a stop.
STOP_POLL_S = 0.1
# Messages between two looks at the ceiling: operations at once may exceed it by as many each.
MOST_BETWEEN = 100

# Yields the content for each of some recipients, in order.
Contents = Callable[[Sequence[Recipient]], Iterator[Content]]


def deliver(context: WorkContext, step: str, contents: Contents) -> StepResult:
    """Send each recipient the message of `contents`; return the step's result.

    Recipients already recorded as sent are skipped, and so are those whose address an earlier
    attempt found permanently refused, unless the address changed. If some are refused, the result
    is partial. Raises StepFailed if no recipient could be served, if the server failed half-way or
    put some off (a next attempt sends to the rest), or if the sender or the template is invalid.
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
        sending = _Sending(context, step, contents(waiting), transport, domain)
        try:
            _send_all(sending, waiting, report)
        finally:
            sending.record()
        report.summary = transport.told(len(report.sent))
    return result_of(report, context.attempts_left)


@dataclass
class _Sending:
    context: WorkContext
    step: str
    contents: Iterator[Content]
    transport: Transport
    domain: str
    # Accepted by the server, not yet recorded; the next reservation records it.
    _accepted: Delivery | None = None

    def send(self, recipient: Recipient) -> bool:
        """Send to the next one; False if another attempt did.

        Raises MailRefused, MailServerFailed, InvalidTemplate and OverLimit.
        """
        content = next(self.contents)
        delivery = Delivery(self.context.operation_id, self.step, recipient.id)
        reserved = self._reserve(delivery, recipient)
        if reserved is None:
            return False
        try:
            envelope = self._envelope(recipient, reserved)
            self.transport.send(build_message(content, envelope))
        except MailRefused as error:
            self._mark_failed(delivery, str(error), is_permanent=error.permanent)
            raise
        except MailServerFailed as error:
            # Not permanent for the address, even if the settings must change.
            self._mark_failed(delivery, str(error), is_permanent=False)
            raise
        self._accepted = delivery
        return True

    def record(self) -> None:
        """Record the last accepted message, if it is not recorded yet."""
        if self._accepted is not None:
            with self.context.engine.begin() as connection:
                deliveries.mark(connection, self._accepted, "sent")
            self._accepted = None

    def _reserve(self, delivery: Delivery, recipient: Recipient) -> Reserved | None:
        """Record the last accepted message and reserve this one; LeaseLost keeps the record."""
        reserved, lost = None, None
        address, proposed = recipient.address or "", self._id_for(recipient)
        with self.context.engine.begin() as connection:
            if self._accepted is not None:
                deliveries.mark(connection, self._accepted, "sent")
            try:
                # Only the attempt that owns the operation may send.
                heartbeat.beat(connection, self.context.key)
            except LeaseLost as error:
                lost = error
            else:
                reserved = deliveries.reserve(connection, delivery, address, proposed)
        self._accepted = None
        if lost is not None:
            raise lost
        return reserved

    def _envelope(self, recipient: Recipient, reserved: Reserved) -> Envelope:
        mail = self.context.settings.mail
        address = recipient.address or ""
        return Envelope(mail.sender, address, recipient.name, *reserved, mail.reply_to)

    def _id_for(self, recipient: Recipient) -> str:
        digest = sha256(recipient.id.encode()).hexdigest()[:16]
        return f"<{self.context.operation_id}.{self.step}.{digest}@{self.domain}>"

    def _mark_failed(self, delivery: Delivery, error: str, *, is_permanent: bool) -> None:
        with self.context.engine.begin() as connection:
            deliveries.mark(connection, delivery, "failed", error, is_permanent=is_permanent)


def _send_all(sending: _Sending, waiting: Sequence[Recipient], report: Report) -> None:
    context = sending.context
    pace, ceiling = _Pace(context.settings.mail.rate), _MailCeiling(context)
    for done, recipient in enumerate(waiting):
        context.progress(done, len(waiting), phase="send")
        if not pace.is_due:
            sending.record()
        if not pace.wait(context.should_stop):
            report.stopped = True
            return
        ceiling.check(done)
        try:
            is_new = sending.send(recipient)
        except (InvalidTemplate, OverLimit) as error:
            raise StepFailed(str(error), permanent=error.permanent) from None
        except MailRefused as error:
            report.add(recipient.id, error)
        except MailServerFailed as error:
            report.cut_short = error
            return
        else:
            (report.sent if is_new else report.had_it).append(recipient.id)
    context.progress(len(waiting), len(waiting), phase="send")


@dataclass
class _Pace:
    """Allows `rate` messages a minute, evenly spread; None is unlimited."""

    rate: int | None
    _next_at: float | None = field(default=None, init=False)

    @property
    def is_due(self) -> bool:
        """Whether the next message may be sent now."""
        return self._next_at is None or monotonic() >= self._next_at

    def wait(self, should_stop: Callable[[], bool]) -> bool:
        """Wait for the next message's turn; return False if `should_stop()` ends the wait."""
        pause = Event()
        while not should_stop():
            left = 0.0 if self._next_at is None else self._next_at - monotonic()
            if left <= 0:
                if self.rate is not None:
                    self._next_at = monotonic() + 60 / self.rate
                return True
            pause.wait(min(left, STOP_POLL_S))
        return False


@dataclass
class _MailCeiling:
    """Stops a step whose restricted small app has sent its mails of the last 24 hours."""

    context: WorkContext
    _asked_after: int = field(default=0, init=False)

    def check(self, sent: int) -> None:
        """Raise StepFailed if no more may be sent, after `sent` messages; ask now and then."""
        if sent < self._asked_after:
            return
        app, limits = self.context.small_app, self.context.settings.limits
        try:
            with reading(self.context.engine) as connection:
                some = ceilings.check(connection, app.id, Ceiling.MAILS, limits, 1)
        except Refused as error:
            raise StepFailed(str(error), permanent=False) from None
        self._asked_after = sent + min(some, MOST_BETWEEN)


def _each_once(recipients: list[Recipient]) -> list[Recipient]:
    return list({recipient.id: recipient for recipient in recipients}.values())


def _sender_domain(sender: str) -> str:
    try:
        domain = parse_address(sender).domain
    except InvalidAddress as error:
        raise StepFailed(f"SCHED_MAIL_SENDER: {error}", permanent=True) from None
    return re.sub(r"[^A-Za-z0-9.-]", "-", domain)
