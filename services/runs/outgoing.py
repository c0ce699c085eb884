"""The mails, webhooks and pings that running an action now would send."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pydantic import Field

from minutebook.steps import Recipient
from models.action.document import ScheduledActionModel
from models.action.hooks import HooksModel
from models.notices import PINGS, Moment, Target, shown_target
from models.store.notices.alerting import NO_HOOKS
from services.view import View


class Outgoing(View):
    """A mail, a webhook or a ping that a run sends."""

    kind: str = Field(description="`mail` or `webhook`; of a ping `GET` or `POST`.")
    source: str = Field(description="The step or the key of `hooks` that sends it, or `alert`.")
    when: str = Field(description="What must happen for it; empty if it is sent in any case.")
    count: int = Field(description="How many addresses or URLs.")
    is_asked: bool = Field(False, description="Whether the user of a manual run decides.")
    to: tuple[str, ...] = Field(description="All addresses; of a URL the host or reference.")


@dataclass(frozen=True, slots=True)
class Outbound:
    """What a manual run sends depends on: the action, whom it reaches, what plug-ins mail."""

    model: ScheduledActionModel
    reached: list[Recipient]
    # By the step that mails it: for what, and to whom.
    others: Mapping[str, tuple[str, list[Recipient]]]


def outgoing_of(
    run: Outbound, hooks: HooksModel | None, alerts: tuple[Target, ...], alert_after: int
) -> tuple[Outgoing, ...]:
    """Return all that a run may send; `alerts` and `alert_after` are the installation's."""
    after = alert_after if hooks is None or hooks.alert_after is None else hooks.alert_after
    own = hooks or NO_HOOKS
    told = {
        "on_success": (own.at(Moment.SUCCESS), "if it succeeds"),
        "on_failure": (own.at(Moment.FAILURE), "if it fails or is partial"),
    }
    found = [*_of_steps(run), *_notices(own.at(Moment.START), "ping", "when it starts")]
    for source, (targets, when) in told.items():
        found += _notices(targets, source, when)
    alerted = tuple(dict.fromkeys((*own.of_findings, *alerts)))
    found += _notices(alerted, "alert", f"after {after} failures in a row, and on recovery")
    return tuple(found)


def _of_steps(run: Outbound) -> Iterator[Outgoing]:
    for step in run.model.operations.steps:
        if step.spec is not None and step.spec.sends:
            yield _mail(step.name, "", run.reached)
        elif step.name in run.others:
            yield _mail(step.name, *run.others[step.name], is_asked=True)


def _mail(
    source: str, when: str, reached: Iterable[Recipient], *, is_asked: bool = False
) -> Outgoing:
    to = tuple(one.address for one in reached if one.address)
    return Outgoing(kind="mail", source=source, when=when, count=len(to), to=to, is_asked=is_asked)


def _notices(targets: Iterable[Target], source: str, when: str) -> Iterator[Outgoing]:
    for kind in ("mail", "webhook", *sorted(PINGS)):
        to = tuple(shown_target(one) for one in targets if one.kind == kind)
        if to:
            source = "ping" if kind in PINGS else source
            yield Outgoing(kind=kind, source=source, when=when, count=len(to), to=to)
