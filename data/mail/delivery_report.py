"""The report of a step's messages: counts, samples, one sentence, and the step's outcome."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from minutebook.steps import StepFailed, StepOutcome, StepResult
from tasks.outgoing.failures import MailRefused, MailServerFailed

MOST_SAMPLES = 10


@dataclass
class Report:
    """Recipients by the outcome of their message.

    `refused` are permanent failures, `put_off` temporary ones, each with the reason.
    """

    wanted: int = 0
    # Refused by an earlier attempt: part of `refused`, not of `wanted`.
    refused_before: int = 0
    summary: str = ""
    sent: list[str] = field(default_factory=list)
    had_it: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    put_off: dict[str, str] = field(default_factory=dict)
    uncertain: int = 0
    without_address: list[str] = field(default_factory=list)
    # Why the sending ended before the last recipient.
    cut_short: MailServerFailed | None = None
    stopped: bool = False

    def add(self, recipient: str, error: MailRefused) -> None:
        """Record that a recipient's message was not accepted."""
        (self.refused if error.permanent else self.put_off)[recipient] = str(error)
        self.uncertain += error.uncertain


def result_of(report: Report, attempts_left: int) -> StepResult:
    """Return the step's result: partial if some are refused, or put off by the last attempt.

    Raises StepFailed if the server failed (the rest waits for a next attempt), if a next attempt
    can reach those put off, and if no recipient could be served.
    """
    if report.cut_short is not None:
        refused_now = len(report.refused) - report.refused_before
        waiting = report.wanted - len(report.sent) - refused_now
        raise StepFailed(
            f"{report.summary}, {waiting} still wait: {report.cut_short}",
            permanent=report.cut_short.permanent,
        )
    is_served = bool(report.sent or report.had_it)
    if not report.stopped:
        if report.put_off and attempts_left and is_served:
            raise StepFailed(f"{_sentence(report)}; a retry sends to those put off")
        if not is_served and (report.put_off or report.refused):
            first = _first(report.put_off or report.refused)
            raise StepFailed(f"no message was accepted: {first}", permanent=not report.put_off)
    is_partial = bool(report.refused or report.put_off or report.stopped)
    return StepResult(
        message=_sentence(report),
        outcome=StepOutcome.PARTIAL if is_partial else StepOutcome.SUCCESS,
        details=_details(report),
    )


def _is_idle(report: Report) -> bool:
    return not (report.sent or report.had_it or report.refused or report.put_off or report.stopped)


def _sentence(report: Report) -> str:
    parts = ["warning: no recipient left, nothing was sent"] if _is_idle(report) else []
    if report.sent:
        parts.append(report.summary)
    if report.had_it:
        parts.append(f"{len(report.had_it)} already had it")
    if report.refused:
        parts.append(f"{len(report.refused)} refused ({_first(report.refused)})")
    if report.put_off:
        parts.append(f"{len(report.put_off)} put off ({_first(report.put_off)})")
    if report.stopped:
        parts.append(f"stopped after {len(report.sent)} of {report.wanted}")
    if report.without_address:
        parts.append(f"{len(report.without_address)} without an address")
    return "; ".join(parts)


def _details(report: Report) -> dict[str, Any]:
    details: dict[str, Any] = {"sent": len(report.sent), "had_it": len(report.had_it)}
    for name, those in (("refused", report.refused), ("put_off", report.put_off)):
        if those:
            details[name] = {"count": len(those), "samples": _samples(those)}
    if report.uncertain:
        details["uncertain"] = report.uncertain
    if report.without_address:
        some = report.without_address[:MOST_SAMPLES]
        details["without_address"] = {"count": len(report.without_address), "samples": some}
    if _is_idle(report):
        details["warning"] = "no recipient left"
    return details


def _samples(those: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(those.items())[:MOST_SAMPLES])


def _first(those: Mapping[str, str]) -> str:
    recipient, text = next(iter(those.items()))
    return f"{recipient}: {text}"
