"""The four ceilings of a restricted small app, each at its edge; a trusted one has none."""

from dataclasses import replace
from random import Random
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from data.settings import Limits
from data.steps import send_email
from data.steps.send_email import SendEmailParameters
from data.store.tables import deliveries
from minutebook.steps import Recipient, SmallApp, StepFailed
from models.errors import Refused
from models.notices import NoticeKind, Target
from models.sql import database_now
from models.store import audit, notices, tenants
from models.store.notices import Origin
from models.store.tenants import ceilings
from models.store.tenants.ceilings import Ceiling
from models.tables import metadata
from models.trust import TRUSTED
from runtime.sections.limits import LimitSettings
from scheduler.changes import change
from tests.factories import author, make_app, make_document
from tests.integration.data.steps.conftest import ANN, BEN, Work
from tests.transactions import act, execute, fetched
from tests.web_source import Page, WebSource


@pytest.fixture
def shop(engine: sa.Engine) -> SmallApp:
    return make_app(engine, "shop")


MAIL = {"welcome": {"subject": "Hello", "text": "Dear {{ recipient.name }}"}}
MANY = [Recipient(f"u{number}", f"u{number}@example.com", None) for number in range(5)]


def trust(engine: sa.Engine, app: SmallApp) -> None:
    act(engine, tenants.set_trust, app.id, TRUSTED)


def test_an_app_has_as_many_actions_as_the_ceiling_says(engine: sa.Engine, shop: SmallApp) -> None:
    by = replace(author(app=shop), limits=LimitSettings(actions=3))
    change.create_all(engine, [make_document(name="first")], by)
    documents = [make_document(name=f"action {number}") for number in range(3)]

    for store in (change.apply_all, change.create_all):
        with pytest.raises(Refused) as refusal:
            store(engine, documents, by)
        assert str(refusal.value) == (
            "small app 'shop' is restricted to 3 actions (SCHED_LIMITS_ACTIONS), and this makes 4; "
            "delete some, or let an admin of the installation raise the ceiling"
        )
    assert len(change.apply_all(engine, documents[:2], by)) == 2
    assert change.apply_all(engine, [make_document(name="first", description="new")], by)
    trust(engine, shop)
    assert len(change.create_all(engine, [make_document(name="one more")], by)) == 1


def test_a_refresh_whose_snapshot_has_no_room_fails_and_leaves_nothing(work: Work) -> None:
    drawn = Random(7)
    rows = "".join(f"{number},{drawn.random()}\n" for number in range(60_000))
    work.has(a=f"id,x\n{rows}", b=f"id,y\n{rows}")
    tight = {"limits": Limits(disk_mb=1)}

    with pytest.raises(StepFailed) as failure:
        work.refresh(tight)
    with pytest.raises(StepFailed):
        work.refresh(tight)

    assert failure.value.permanent
    assert str(failure.value).startswith(
        "small app 'shop' is restricted to 1 MiB of snapshots and downloads "
        "(SCHED_LIMITS_DISK_MB), and this makes 2; "
    )
    held = [one.name for one in work.domains().values() if one.staging is not None]
    files = [*(work.settings.home / "snapshots").rglob("*.parquet")]
    assert len(files) == len(held) <= 1
    assert [*(work.settings.home / "scratch").rglob("*.parquet")] == []
    trust(work.engine, work.app)
    assert work.refresh(tight)


def test_a_download_that_has_no_room_is_removed(work: Work, web: WebSource) -> None:
    web.pages["/big.csv"] = Page(b"id\n" + b"1\n" * (3 * 2**20))
    work.apply(domains={"a": {"source": {"url": f"{web.url}/big.csv"}}})

    with pytest.raises(StepFailed, match="SCHED_LIMITS_DISK_MB") as failure:
        work.refresh({"limits": Limits(disk_mb=1)})

    assert failure.value.permanent
    assert [*(work.settings.home / "downloads").rglob("*.*")] == []


def sent_to(work: Work, recipients: list[Recipient], mails: int) -> str:
    context = work.context(
        SendEmailParameters(template="welcome"),
        recipients=recipients,
        limits=LimitSettings(mails=mails),
    )
    return str(send_email.run(context).message)


def test_an_app_sends_as_many_mails_in_24_hours_as_the_ceiling_says(work: Work) -> None:
    work.apply(templates=MAIL)
    sent_to(work, [ANN, BEN], 4)

    with pytest.raises(StepFailed, match="SCHED_LIMITS_MAILS") as failure:
        sent_to(work, MANY, 4)

    assert not failure.value.permanent
    states = fetched(work.engine, sa.select(deliveries.c.state)).scalars().all()
    assert states == ["sent"] * 4
    with pytest.raises(StepFailed, match=r"restricted to 4 mails in 24 hours .* makes 5"):
        sent_to(work, [ANN], 4)
    trust(work.engine, work.app)
    assert "5" in sent_to(work, MANY, 4)


def test_mails_of_the_day_before_count_no_longer(work: Work) -> None:
    work.apply(templates=MAIL)
    sent_to(work, [ANN, BEN], 2)
    execute(work.engine, sa.update(deliveries).values(updated_at=database_now(-ceilings.DAY)))

    assert "2" in sent_to(work, [ANN, BEN], 2)


def test_mails_of_hooks_and_tests_count_and_other_notices_do_not(work: Work) -> None:
    owed = {"state": "done", "finished_at": database_now()}
    origin, kind = Origin(work.app.id, None, uuid4()), NoticeKind.RUN_ENDED
    targets = [Target("mail", "a@example.com"), Target("webhook", "https://example.com/")]
    act(work.engine, notices.enqueue, origin, 1, targets, {"kind": kind})
    execute(work.engine, sa.update(metadata.tables["notices"]).values(owed))
    tested: dict[str, Any] = {"verb": "template.send_test", "objects": {"welcome": None}}
    act(work.engine, audit.write, small_app_id=work.app.id, actor="tests", **tested)

    limits = LimitSettings(mails=5)
    assert act(work.engine, ceilings.check, work.app.id, Ceiling.MAILS, limits, 1) == 3
