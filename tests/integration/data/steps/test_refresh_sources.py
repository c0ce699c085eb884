"""refresh from readers, queries and URLs with secrets; rows merged by key; several at once."""

import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import fsspec
import pytest
import sqlalchemy as sa
from pydantic import BaseModel, SecretStr

import minutebook
from data.settings import Retention, SnapshotSettings
from data.store import snapshots as stored
from data.store.tables import domains
from minutebook import readers
from minutebook.steps import NoParameters, StepFailed, StepOutcome, StepResult
from models.sql import database_now, read_clock
from tasks.steps import maintenance
from tests.integration.data.steps.conftest import Work, from_files
from tests.transactions import act, execute, fetched
from tests.web_source import Page, WebSource

A = from_files("a")["a"]
CRM = {"source": {"reader": "crm"}}
BY_ID = {"mode": "append", "key": ["id"]}


class Since(BaseModel):
    token: str
    least: int = 0


@pytest.fixture(autouse=True)
def _own_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "_registered", {})


def read_from(work: Work, rows: Iterable[Any], **options: Any) -> None:
    """Let the only domain be what the reader `crm` returns: these rows."""
    minutebook.reader("crm", **options)(lambda _context: rows)
    work.apply(domains={"a": CRM})


def test_a_reader_is_made_anew_each_time(work: Work) -> None:
    made: list[int] = []

    @minutebook.reader("crm")
    def factory(_context: Any) -> Iterator[dict[str, Any]]:
        made.append(1)
        yield {"id": len(made)}

    work.apply(domains={"a": CRM})
    work.refresh()

    assert work.refresh().message == "rewrote a (1 row)"
    assert work.staged() == [{"id": 2}]


def test_a_reader_gets_the_context_with_its_parameters(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRM_TOKEN", "s3cret")

    @minutebook.reader("crm", parameters=Since)
    def factory(context: Any) -> Iterator[dict[str, Any]]:
        app, left = context.small_app, context.time_left().total_seconds()
        yield {
            **context.parameters.model_dump(), "app": app.name, "color": app.settings["color"],
            "run": context.run_number, "stops": context.should_stop(), "left": left > 3000,
        }  # fmt: skip

    source = {"reader": "crm", "parameters": {"token": "env:CRM_TOKEN", "least": 5}}
    work.apply(domains={"a": {"source": source}})
    work.app = replace(work.app, settings={"color": "red"})
    work.refresh()

    assert work.staged() == [
        {
            "token": "s3cret", "least": 5, "app": "shop", "color": "red", "run": 1,
            "stops": False, "left": True,
        }
    ]  # fmt: skip


def test_what_a_reader_reports_and_remembers_comes_into_the_operation(
    work: Work, caplog: pytest.LogCaptureFixture
) -> None:
    @minutebook.reader("crm")
    def factory(context: Any) -> Iterator[dict[str, Any]]:
        context.progress(1, 2, "half of it")
        context.logger.warning("page %d is empty", 7)
        context.checkpoint["page"] = context.checkpoint.get("page", 0) + 1
        yield {"page": context.checkpoint["page"]}

    work.apply(domains={"a": CRM})
    work.refresh()
    work.refresh()

    assert work.staged() == [{"page": 2}]
    assert work.checkpoint == {"page": 2}
    assert (1, 2, "half of it") in work.progress.reports
    assert "page 7 is empty" in caplog.text


def test_a_reader_that_exits_fails_its_domain_alone(work: Work) -> None:
    @minutebook.reader("crm")
    def factory(context: Any) -> Iterator[dict[str, Any]]:
        context.checkpoint["page"] = 7
        yield {"id": 1}
        raise SystemExit(3)

    work.apply(domains={"a": CRM, **from_files("b")})
    work.write("b.csv", "id\n1\n")

    assert work.refresh().message == "rewrote b (1 row); a failed: reader crm: SystemExit: 3"
    assert work.checkpoint == {}


def test_wrong_parameters_are_reported_without_their_values(work: Work) -> None:
    minutebook.reader("crm", parameters=Since)(lambda _context: [])
    source = {"reader": "crm", "parameters": {"token": "x", "least": "s3cret"}}
    work.apply(domains={"a": {"source": source}})

    with pytest.raises(StepFailed, match=r"reader crm: parameters\.least") as failed:
        work.refresh()

    assert failed.value.permanent
    assert "s3cret" not in str(failed.value)


def test_a_mapper_changes_drops_and_leaves_out_rows(work: Work) -> None:
    def mapper(row: Any, context: Any) -> dict[str, Any] | None:
        share = 10 / (row["id"] - 20)
        return None if row["id"] % 2 else {**row, "share": share, "app": context.small_app.name}

    read_from(work, [{"id": n} for n in range(41)], mapper=mapper)

    result = work.refresh()

    assert result.outcome is StepOutcome.PARTIAL
    assert result.message == "rewrote a (20 rows); 1 row of a left out"
    assert [row["id"] for row in work.staged()] == [n for n in range(0, 41, 2) if n != 20]
    assert {row["app"] for row in work.staged()} == {"shop"}
    (sample,) = result.details["left_out"]["a"]["samples"]
    assert (sample["line"], sample["value"]) == (21, "{'id': 20}")
    assert sample["why"] == "ZeroDivisionError: division by zero"


def test_what_is_no_row_is_left_out(work: Work) -> None:
    read_from(work, [*({"id": n} for n in range(20)), b"x"])

    (sample,) = work.refresh().details["left_out"]["a"]["samples"]

    assert sample == {
        "line": 21, "column": None, "value": "b'x'", "why": "is not a row; return a dict"
    }  # fmt: skip


def test_a_reader_that_raises_half_way_leaves_the_last_snapshot(work: Work) -> None:
    fails: list[bool] = []
    closed: list[int] = []

    @minutebook.reader("crm")
    def factory(_context: Any) -> Iterator[dict[str, Any]]:
        try:
            for number in range(5_000):
                if number == 3_000 and fails:
                    raise ConnectionError("the CRM is away")
                yield {"id": number}
        finally:
            closed.append(1)

    work.apply(domains={"a": CRM})
    work.refresh()
    before = work.domains()["a"].staging
    fails.append(True)

    with pytest.raises(StepFailed, match="reader crm: ConnectionError: the CRM is away") as failed:
        work.refresh()

    assert not failed.value.permanent
    assert work.domains()["a"].staging == before
    assert len(work.staged()) == 5_000
    assert len(closed) == 2


def test_a_reader_may_say_that_trying_again_is_in_vain(work: Work) -> None:
    @minutebook.reader("crm")
    def factory(_context: Any) -> Iterator[dict[str, Any]]:
        raise StepFailed("the contract ended", permanent=True)

    work.apply(domains={"a": CRM})

    with pytest.raises(StepFailed, match="the contract ended") as failed:
        work.refresh()

    assert failed.value.permanent


def test_an_unknown_reader_is_reported_with_the_nearest(work: Work) -> None:
    read_from(work, [])
    work.apply(domains={"a": {"source": {"reader": "crn"}}})

    with pytest.raises(StepFailed, match=r'reader "crn" .* did you mean "crm"\?') as failed:
        work.refresh()

    assert failed.value.permanent


def test_a_module_that_cannot_be_imported_is_reported_with_its_reader(work: Work) -> None:
    work.apply(domains={"a": CRM})

    with pytest.raises(StepFailed, match=r'reader "crm" .*; absent_readers: ModuleNotFoundError'):
        work.refresh({"step_modules": ("absent_readers",)})


def test_a_stop_ends_a_reader_and_keeps_the_last_snapshot(work: Work) -> None:
    read_from(work, ({"id": 1} for _ in iter(int, 1)))

    result = work.refresh({"should_stop": lambda: len(work.progress.reports) > 10})

    assert result.message == "stopped after 0 of 1"
    assert work.domains()["a"].staging is None


def test_rows_of_a_query_come_into_staging(work: Work) -> None:
    url = work.engine.url.render_as_string(hide_password=False)
    query = {"sql": "SELECT name, zone FROM small_apps WHERE name = 'shop'", "connection": "own"}
    work.apply(domains={"a": {"source": query}})

    result = work.refresh({"connections": {"own": SecretStr(url)}})

    assert result.message == "rewrote a (1 row)"
    assert work.staged() == [{"name": "shop", "zone": "Europe/Paris"}]


def test_a_readers_errors_show_no_secret(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRM_TOKEN", "s3cret/&")

    @minutebook.reader("crm", parameters=Since)
    def factory(context: Any) -> Iterator[dict[str, Any]]:
        token = context.parameters.token
        yield {"id": 1}
        url = f"https://crm.example.com/?{urlencode({'token': token})}"
        raise ConnectionError(f"{url} with {token}")

    source = {"reader": "crm", "parameters": {"token": "env:CRM_TOKEN"}}
    work.apply(domains={"a": {"source": source}})

    with pytest.raises(StepFailed) as raised:
        work.refresh()

    expected = "a: reader crm: ConnectionError: https://crm.example.com/?token=*** with ***"
    assert str(raised.value) == expected


def test_a_header_that_cannot_be_sent_shows_no_secret(
    work: Work, web: WebSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPORTS_TOKEN", "s3cret ")
    source = {"url": f"{web.url}/a.csv", "headers": {"Authorization": "env:REPORTS_TOKEN"}}
    work.apply(domains={"a": {"source": source}})

    with pytest.raises(StepFailed, match="begins or ends with a space") as raised:
        work.refresh()

    assert "s3cret" not in str(raised.value)


def test_a_driver_that_raises_what_it_should_not_fails_its_domain_alone(work: Work) -> None:
    url = f"sqlite:///{work.settings.home}/shop.db?detect_types=2"
    query = {"sql": "SELECT 'soon' AS \"at [timestamp]\"", "connection": "own"}
    work.apply(domains={"a": {"source": query}, **from_files("b")})
    work.write("b.csv", "id\n1\n")

    result = work.refresh({"connections": {"own": SecretStr(url)}})

    assert result.outcome is StepOutcome.PARTIAL
    assert result.details["rewritten"] == ["b"]
    assert result.details["failed"]["a"].startswith("connection own failed: ValueError: ")


def test_a_url_and_its_header_may_be_secrets(
    work: Work, web: WebSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPORTS_URL", f"{web.url}/a.csv")
    monkeypatch.setenv("REPORTS_TOKEN", "Bearer s3cret")
    web.pages["/a.csv"] = Page(b"id\n1\n", headers={"ETag": '"one"'})
    source = {"url": "env:REPORTS_URL", "headers": {"Authorization": "env:REPORTS_TOKEN"}}
    work.apply(domains={"a": {"source": source, "format": "csv"}})

    messages = [work.refresh().message for _ in range(2)]

    assert messages == ["rewrote a (1 row)", "reused a"]
    assert {one["authorization"] for one in web.headers} == {"Bearer s3cret"}
    for kept in ("SELECT document FROM small_apps", "SELECT source FROM domains"):
        assert "s3cret" not in "".join(fetched(work.engine, sa.text(kept)).scalars())


def test_new_rows_are_merged_into_those_of_the_last_snapshot(work: Work) -> None:
    work.apply(domains={"a": {**A, **BY_ID}})
    work.write("a.csv", "id,v\n1,a\n2,b\n")
    work.refresh()
    work.write("a.csv", "id,v\n2,z\n3,c\n")

    result = work.refresh()

    assert result.message == "rewrote a (3 rows)"
    assert work.staged() == [
        {"id": 1, "v": "a"}, {"id": 2, "v": "z"}, {"id": 3, "v": "c"}
    ]  # fmt: skip


def test_a_file_that_ended_before_and_does_not_now_is_cut(work: Work) -> None:
    work.imported(a="id,name\n1,ann\n2,bob\n")
    work.write("a.csv", "id,name\n1,ann\n2,bo")

    with pytest.raises(StepFailed, match=r'no end of its last line.*"force": true'):
        work.refresh()
    assert work.staged()[1] == {"id": 2, "name": "bob"}

    work.refresh(force=True)
    assert work.staged()[1] == {"id": 2, "name": "bo"}
    work.write("a.csv", "id,name\n1,ann\n2,bobby")
    work.refresh()
    assert work.staged()[1] == {"id": 2, "name": "bobby"}


def test_another_file_without_a_last_line_end_is_not_cut(work: Work) -> None:
    work.imported(a="id,name\n1,ann\n")
    work.apply(domains={"a": from_files("b")["b"]})
    work.write("b.csv", "id,name\n2,bob")

    work.refresh()

    assert work.staged() == [{"id": 2, "name": "bob"}]


@pytest.mark.parametrize("then", ["staged", "confirmed"])
def test_what_began_later_stays_staged_though_it_ended_first(work: Work, then: str) -> None:
    """Of two refreshes of a domain, the first to begin is the last to end."""
    newer = "id\n2\n"
    if then == "confirmed":
        work.imported(a=newer)
    second: list[StepResult] = []

    def meanwhile() -> bool:
        if "import" in work.progress.phases and not second:
            second.append(StepResult())
            second[0] = work.imported(a=newer)
        return False

    read_from(work, [{"id": 1}])
    work.progress.phases.clear()
    first = work.refresh({"should_stop": meanwhile})

    assert first.message == "a later refresh staged newer data of a"
    assert first.details["overtaken"] == ["a"]
    assert second[0].message == ("rewrote a (1 row)" if then == "staged" else "reused a")
    assert work.staged() == [{"id": 2}]
    assert len(act(work.engine, stored.paths, work.app.id)) == 1
    assert len(work.files()) == 1


def test_what_was_staged_before_the_clock_went_back_is_replaced(work: Work) -> None:
    work.imported(a="id\n1\n")
    execute(work.engine, sa.update(domains).values(staging_begun_at=database_now(3600.0)))
    work.write("a.csv", "id\n2\n3\n")

    assert work.refresh().message == "rewrote a (2 rows)"
    assert work.refresh().message == "reused a"


def test_what_was_read_before_a_later_reading_does_not_confirm_it(work: Work) -> None:
    """The source went back to what was staged while an older reading of it was staged."""
    work.imported(a="id\n1\n")
    was = work.domains()["a"].staging
    assert was is not None
    with work.engine.begin() as connection:
        now = read_clock(connection)
        newer = replace(was, id=uuid4(), path="other")
        stored.stage(connection, work.app.id, newer, uuid4(), now)

        confirmed = [
            stored.confirm(connection, work.app.id, was, now + timedelta(seconds=shift))
            for shift in (-1, 1)
        ]

    assert confirmed == [stored.Staged.OVERTAKEN, stored.Staged.CHANGED]


def test_rows_that_came_meanwhile_are_not_lost(work: Work) -> None:
    """Two refreshes merge into the same snapshot: the later one begins anew with the next try."""
    second: list[bool] = []

    def meanwhile() -> bool:
        if "download" in work.progress.phases and not second:
            second.append(True)
            work.write("a.csv", "id\n2\n")
            work.apply(domains={"a": {**A, **BY_ID}})
            work.refresh()
        return False

    read_from(work, [{"id": 1}])
    work.apply(domains={"a": {**CRM, **BY_ID}})

    with pytest.raises(StepFailed, match="changed or deleted meanwhile") as failed:
        work.refresh({"should_stop": meanwhile})

    assert not failed.value.permanent
    assert work.staged() == [{"id": 2}]
    assert len(act(work.engine, stored.paths, work.app.id)) == 1


def test_four_domains_are_downloaded_side_by_side(work: Work, web: WebSource) -> None:
    names = ["a", "b", "c", "d", "e"]
    for name in names:
        web.pages[f"/{name}.csv"] = Page(b"id\n1\n", trickle_s=0.05)
    work.apply(domains={name: {"source": {"url": f"{web.url}/{name}.csv"}} for name in names})
    at_once: list[int] = []

    def count() -> bool:
        at_once.append(sum(one.name.startswith("source") for one in threading.enumerate()))
        return False

    result = work.refresh({"should_stop": count})

    assert result.details["rewritten"] == names
    assert max(at_once) == 4
    assert work.progress.phases == ["probe", "download", "import"]


def test_an_interruption_ends_the_downloads(work: Work, web: WebSource) -> None:
    class Interrupted(BaseException):
        pass

    for name in ("a", "b"):
        web.pages[f"/{name}.csv"] = Page(b"id\n" + b"1\n" * 5_000, trickle_s=0.05)
    work.apply(domains={n: {"source": {"url": f"{web.url}/{n}.csv"}} for n in ("a", "b")})

    def interrupt() -> bool:
        if threading.current_thread() is threading.main_thread() and len(web.requests) >= 2:
            raise Interrupted
        return False

    with pytest.raises(Interrupted):
        work.refresh({"should_stop": interrupt})

    for thread in threading.enumerate():
        if thread.name.startswith("source"):
            thread.join(30)
            assert not thread.is_alive()
    assert work.domains()["a"].staging is None
    assert not list((work.settings.home / "downloads").rglob("*.part"))


def test_refresh_publish_and_maintenance_work_in_an_object_store(work: Work) -> None:
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    elsewhere: dict[str, Any] = {"snapshots": SnapshotSettings(url=SecretStr("memory://bucket/x"))}
    work.apply(domains=from_files("a"))
    for text in ("id\n1\n", "id\n1\n2\n", "id\n1\n2\n3\n"):
        work.write("a.csv", text)
        work.refresh(elsewhere)
    published = work.publish(elsewhere, data=True)

    keep_one: dict[str, Any] = {"retention": Retention(snapshots=1)}
    pruned = maintenance.run(work.context(NoParameters(), **elsewhere, **keep_one))
    memory.store.clear()
    damaged = maintenance.run(work.context(NoParameters(), **elsewhere))

    assert published.message == "published a (3 rows)"
    assert pruned.details == {
        **pruned.details, "problems": [], "pruned": {**pruned.details["pruned"], "snapshots": 1}
    }  # fmt: skip
    assert pruned.details["pruned"]["files"] == 1
    assert damaged.outcome is StepOutcome.PARTIAL
    assert damaged.details["problems"] == [
        "the staging snapshot of a is damaged; refresh with force",
        "the production snapshot of a is damaged; refresh with force",
    ]
    assert not (work.settings.home / "snapshots").exists()


def test_what_was_downloaded_and_not_imported_is_removed(work: Work, web: WebSource) -> None:
    for name in ("a", "b"):
        web.pages[f"/{name}.csv"] = Page(b"id\n1\n")
    work.apply(domains={n: {"source": {"url": f"{web.url}/{n}.csv"}} for n in ("a", "b")})

    stops = {"should_stop": lambda: "import" in work.progress.phases}
    result = work.refresh(stops)

    assert (result.outcome, web.downloads("/b.csv")) == (StepOutcome.PARTIAL, 1)
    assert not list((work.settings.home / "downloads").rglob("*.part"))
