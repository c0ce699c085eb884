"""Check the user's Celery applications: their brokers, and the tasks that actions send there."""

from collections.abc import Iterator, Sequence

import sqlalchemy as sa

from broker import probe
from broker.celery_rules import Application, applications, broker_setting, rules_of
from models.action.plan import Plan, read_plan
from models.carriers import at_application
from models.celery_task import HANDED_OVER, CeleryRules, HandOver
from models.errors import BrokerUnavailable
from models.store import presence
from models.store.operations.handing import FOLLOWED_WITHIN
from runtime.config import Settings
from views.doctor.report import Checked, fault, ok, warning

_TASKS = "celery tasks"


def check_brokers(settings: Settings) -> Iterator[Checked]:
    """Yield whether each broker delivers a message, but for ours."""
    for one in applications(settings):
        if one.url != settings.effective_broker_url:
            yield _check_broker(one, one.name or settings.celery.application)


def _check_broker(application: Application, name: str | None) -> Checked:
    check = f"celery broker {name}" if name else "celery broker"
    try:
        probe.probe_celery_broker(application)
    except BrokerUnavailable as error:
        return fault(check, str(error), f"check {broker_setting(name)}, and whether it runs")
    return ok(check, "accepts and delivers messages")


def check_tasks(
    connection: sa.Connection, settings: Settings, plans: list[str]
) -> Iterator[Checked]:
    """Yield the findings about tasks of applications: allowed and followed, or not."""
    found = [read_plan(plan) for plan in plans if HANDED_OVER in plan]
    handed = [one.hand_over for one in found if isinstance(one, Plan)]
    sent = [one for one in handed if one is not None]
    rules = rules_of(settings)
    yield from _refused(rules, sent)
    followed = presence.followed_tasks(connection, FOLLOWED_WITHIN)
    known = {(one.task, rules.canonical(one.application)) for one in sent}
    unfollowed = [at_application(*one) for one in known if not followed.has(*one)]
    yield from _followed(len(known), sorted(unfollowed))
    yield from _astray(connection, settings)


def _astray(connection: sa.Connection, settings: Settings) -> Iterator[Checked]:
    """Yield a warning for each worker of an application that the settings do not name."""
    for one in presence.live_workers(connection, FOLLOWED_WITHIN):
        name = one["application"]
        if name is not None and name not in settings.celery.brokers:
            text = f"worker {one['name']} follows for the application {name!r}, which is unknown"
            remedy = "correct `application` where it calls `minutebook.follow`, or the settings"
            yield warning(_TASKS, text, remedy)


def _refused(rules: CeleryRules, sent: Sequence[HandOver]) -> Iterator[Checked]:
    """Yield a fault for each application, task and exchange to which nothing may be sent."""
    found = dict.fromkeys(fault for one in sent for fault in _faults(rules, one))
    for text, remedy in sorted(found):
        yield fault(_TASKS, text, remedy)


def _faults(rules: CeleryRules, one: HandOver) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a task that an action sends, each with its remedy."""
    if one.application is not None and (why := rules.why_no_application(one.application)):
        yield f"application {one.application} {why}", "set it for the daemon too"
        return
    its = rules.at(one.application)
    if not its.allows(one.task):
        yield f"{one.task} may not be sent", "add it to SCHED_CELERY_TASKS, for the daemon too"
    if one.exchange and (why := its.why_not_by(one.exchange)):
        yield f"exchange {one.exchange} {why}", "edit its actions"


def _followed(wanted: int, unfollowed: Sequence[str]) -> Iterator[Checked]:
    if wanted and not unfollowed:
        yield ok(_TASKS, f"{wanted}, all followed by live workers")
    elif wanted:
        text = f"no worker follows {', '.join(unfollowed)}: the result is unknown"
        remedy = "start a worker of its application, or add `minutebook.follow(app)` there"
        yield warning(_TASKS, text, remedy)
