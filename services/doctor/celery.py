"""Check the user's Celery application: its broker, and the tasks that actions send there."""

from collections.abc import Iterator, Sequence

import sqlalchemy as sa

from broker import probe
from broker.celery_rules import application_of, has_one_broker, rules_of
from models.action.plan import Plan, read_plan
from models.celery_task import HANDED_OVER, CeleryRules, HandOver
from models.errors import BrokerUnavailable
from models.notices import BROKERS, FindingKind
from models.store import workers
from models.store.operations.external_send import FOLLOWED_WITHIN
from runtime.config import Settings
from services.doctor.report import Checked, fault, ok, warning

_TASKS = "celery tasks"


def check_broker(settings: Settings) -> Iterator[Checked]:
    """Yield whether the application's broker delivers a message, unless it is ours."""
    application = application_of(settings)
    if has_one_broker(settings):
        return
    try:
        probe.probe_celery_broker(application)
    except BrokerUnavailable as error:
        remedy = BROKERS[FindingKind.APPLICATION_BROKER_DOWN]
        yield fault("celery broker", str(error), remedy)
    else:
        yield ok("celery broker", "accepts and delivers messages")


def check_tasks(
    connection: sa.Connection, settings: Settings, plans: list[str]
) -> Iterator[Checked]:
    """Yield the findings about tasks of the application: allowed and followed, or not."""
    found = [read_plan(plan) for plan in plans if HANDED_OVER in plan]
    handed = [one.hand_over for one in found if isinstance(one, Plan)]
    sent = [one for one in handed if one is not None]
    rules = rules_of(settings)
    yield from _refused(rules, sent)
    followed = workers.followed_tasks(connection, FOLLOWED_WITHIN)
    known = {one.task for one in sent}
    yield from _followed(len(known), sorted(known - followed))


def _refused(rules: CeleryRules, sent: Sequence[HandOver]) -> Iterator[Checked]:
    """Yield a fault for each task and exchange to which nothing may be sent."""
    found = dict.fromkeys(fault for one in sent for fault in _faults(rules, one))
    for text, remedy in sorted(found):
        yield fault(_TASKS, text, remedy)


def _faults(rules: CeleryRules, one: HandOver) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a task that an action sends, each with its remedy."""
    if not rules.allows(one.task):
        yield f"{one.task} may not be sent", "add it to SCHED_CELERY_TASKS, for the daemon too"
    if one.exchange and (why := rules.why_not_by(one.exchange)):
        yield f"exchange {one.exchange} {why}", "edit its actions"


def _followed(wanted: int, unfollowed: Sequence[str]) -> Iterator[Checked]:
    if wanted and not unfollowed:
        yield ok(_TASKS, f"{wanted}, all followed by live workers")
    elif wanted:
        text = f"no worker follows {', '.join(unfollowed)}: the result is unknown"
        remedy = "start a worker of the application, or add `minutebook.follow(app)` there"
        yield warning(_TASKS, text, remedy)
