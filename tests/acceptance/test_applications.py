"""Two applications with the same tasks, each at a broker of its own: neither runs the other's."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from models.celery_task import CeleryRules
from models.store import presence
from runtime.database import reading
from scheduler.changes.change import create_all
from tests.acceptance.installation import Installation
from tests.acceptance.shop import RAN_ONCE, RULES, Shop
from tests.factories import author, make_document, yearly

BOTH = replace(RULES, applications={"crm": CeleryRules(RULES.tasks)})
CRM = 5


class OfCrm(Shop):
    """The same application once more, at another database of the broker."""

    def __init__(self, shop: Shop) -> None:
        super().__init__(shop.installation, "crm")
        url = shop.installation.broker.url.rpartition("/")[0] + f"/{CRM}"
        self.settings |= {"SHOP_BROKER_URL": url}
        shop.settings |= {"SCHED_CELERY_BROKERS_CRM": url}
        file = self.folder / "followed.py"
        text = file.read_text().replace("follow(app)", 'follow(app, application="crm")')
        file.write_text(text)

    def due_there(self, task: str) -> UUID:
        """Record an operation of an action that sends a task to this application."""
        step = {"task": f"tasks.{task}", "args": ["Paris"], "queue": "shop", "application": "crm"}
        when = yearly(self.installation.now(), -40)
        document = make_document(name="of the crm", operations={"celery_task": step}, when=when)
        (action,) = create_all(self.installation.engine, [document], replace(author(), celery=BOTH))
        return self.installation.operation(action)


@pytest.mark.parametrize("store", ["sqlite"])
def test_each_application_runs_and_reports_its_own_tasks(installation: Installation) -> None:
    shop = Shop(installation)
    crm = OfCrm(shop)
    shop.worker()
    crm.worker(is_seen=False).said("ready.")
    ours, theirs = shop.due("close_day"), crm.due_there("close_day")

    shop.tick()

    assert installation.becomes(ours, "success")["queue"] == "shop"
    assert installation.becomes(theirs, "success")["queue"] == "shop@crm"
    assert (shop.said(), crm.said()) == (RAN_ONCE, RAN_ONCE)
    names = [one["name"] for one in live(installation)]
    assert len(names) == 2
    assert [name.endswith(" of crm") for name in sorted(names)] == [False, True]


def live(installation: Installation) -> list[dict[str, Any]]:
    with reading(installation.engine) as connection:
        return presence.live_workers(connection, timedelta(minutes=1))
