"""One message to each recipient of an operation: what both mail steps do."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from mail.message import Content, Envelope, InvalidAddress, build_message, parse_address
from mail.templates import InvalidTemplate
from mail.transport import MailRefused, MailServerFailed, Transport, open_transport
from minutehand.steps import Recipient, StepFailed, StepOutcome, StepResult
from models.sql import read_clock
from models.store import deliveries, running
from models.store.deliveries import Delivery
from runtime.database import reading
from tasks.context import WorkContext

MOST_LISTED = 50


@dataclass
class _Report:
    told: str = ""
    sent: list[str] = field(default_factory=list)
    had_it: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    is_permanent: bool = True
    without_address: list[str] = field(default_factory=list)
    # Why the sending ended before the last recipient.
    cut_short: MailServerFailed | None = None
    stopped: bool = False


def deliver(context: WorkContext, step: str, compose: Callable[[Recipient], Content]) -> StepResult:
    """Send each recipient what `compose` says; return the step's result.

    Those who are on record as having had it are passed over. Some refused: partial. Raises
    StepFailed when nobody could be served, when the server went away half-way (a next attempt
    sends to the rest), or when the sender or the template cannot be used.
    """
    domain = _sender_domain(context.settings.mail.sender)
    with reading(context.engine) as connection:
        had_it = deliveries.already_sent(connection, context.operation_id, step)
    report = _Report(had_it=sorted(had_it))
    report.without_address = [one.id for one in context.recipients if not one.address]
    waiting = _each_once([r for r in context.recipients if r.address and r.id not in had_it])
    with open_transport(context.settings) as transport:
        _send_all(_Sending(context, step, compose, transport, domain), waiting, report)
        report.told = transport.told(len(report.sent))
    return _result(report, len(waiting))


@dataclass(frozen=True, slots=True)
class _Sending:
    context: WorkContext
    step: str
    compose: Callable[[Recipient], Content]
    transport: Transport
    domain: str

    def send(self, recipient: Recipient) -> bool:
        """Send to one; False when another attempt did. Raises MailRefused, MailServerFailed."""
        context = self.context
        delivery = Delivery(context.operation_id, self.step, recipient.id)
        address = recipient.address or ""
        content = self.compose(recipient)
        with context.engine.begin() as connection:
            # Only the attempt that owns the operation may send; raises LeaseLost.
            running.beat(connection, context.operation_id, context.attempt)
            message_id = deliveries.reserve(connection, delivery, address, self._id_for(recipient))
            now = read_clock(connection)
        if message_id is None:
            return False
        try:
            sender = context.settings.mail.sender
            envelope = Envelope(sender, address, recipient.name, message_id, now)
            self.transport.send(build_message(content, envelope))
        except InvalidAddress as error:
            self._mark_failed(delivery, str(error))
            raise MailRefused(str(error), permanent=True) from None
        except (MailRefused, MailServerFailed) as error:
            self._mark_failed(delivery, str(error))
            raise
        with context.engine.begin() as connection:
            deliveries.mark(connection, delivery, "sent")
        return True

    def _id_for(self, recipient: Recipient) -> str:
        who = sha256(recipient.id.encode()).hexdigest()[:16]
        return f"<{self.context.operation_id}.{self.step}.{who}@{self.domain}>"

    def _mark_failed(self, delivery: Delivery, error: str) -> None:
        with self.context.engine.begin() as connection:
            deliveries.mark(connection, delivery, "failed", error)


def _send_all(sending: _Sending, waiting: Sequence[Recipient], report: _Report) -> None:
    for done, recipient in enumerate(waiting):
        sending.context.progress(done, len(waiting), phase="send")
        if sending.context.should_stop():
            report.stopped = True
            return
        try:
            is_new = sending.send(recipient)
        except InvalidTemplate as error:
            raise StepFailed(str(error), permanent=True) from None
        except MailRefused as error:
            report.refused[recipient.id] = str(error)
            report.is_permanent &= error.permanent
        except MailServerFailed as error:
            report.cut_short = error
            return
        else:
            (report.sent if is_new else report.had_it).append(recipient.id)
    sending.context.progress(len(waiting), len(waiting), phase="send")


def _result(report: _Report, wanted: int) -> StepResult:
    served = len(report.sent) + len(report.had_it)
    if report.cut_short is not None:
        raise StepFailed(
            f"{report.told}, {wanted - len(report.sent)} still wait: {report.cut_short}",
            permanent=report.cut_short.permanent,
        )
    if report.refused and not served and not report.stopped:
        raise StepFailed(
            f"no message was taken: {_first(report.refused)}", permanent=report.is_permanent
        )
    is_partial = bool(report.refused) or report.stopped
    return StepResult(
        message=_sentence(report, wanted),
        outcome=StepOutcome.PARTIAL if is_partial else StepOutcome.SUCCESS,
        details=_details(report),
    )


def _sentence(report: _Report, wanted: int) -> str:
    parts = [report.told] if report.sent else []
    if report.had_it:
        parts.append(f"{len(report.had_it)} had it already")
    if report.refused:
        parts.append(f"{len(report.refused)} refused ({_first(report.refused)})")
    if report.stopped:
        parts.append(f"stopped after {len(report.sent)} of {wanted}")
    if report.without_address:
        parts.append(f"{len(report.without_address)} without an address")
    if not report.sent and not report.had_it and not report.refused and not report.stopped:
        parts.insert(0, "warning: no recipient left, nothing was sent")
    return "; ".join(parts)


def _details(report: _Report) -> dict[str, Any]:
    details: dict[str, Any] = {"sent": len(report.sent), "had_it": len(report.had_it)}
    if report.refused:
        details["refused"] = dict(sorted(report.refused.items())[:MOST_LISTED])
    if report.without_address:
        details["without_address"] = report.without_address[:MOST_LISTED]
    if not report.sent and not report.had_it and not report.refused:
        details["warning"] = "no recipient left"
    return details


def _first(refused: dict[str, str]) -> str:
    recipient, text = next(iter(refused.items()))
    return f"{recipient}: {text}"


def _each_once(recipients: list[Recipient]) -> list[Recipient]:
    return list({recipient.id: recipient for recipient in recipients}.values())


def _sender_domain(sender: str) -> str:
    try:
        domain = parse_address(sender).domain
    except InvalidAddress as error:
        raise StepFailed(f"SCHED_MAIL_SENDER: {error}", permanent=True) from None
    return re.sub(r"[^A-Za-z0-9.-]", "-", domain)
