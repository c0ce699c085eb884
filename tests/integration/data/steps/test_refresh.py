"""refresh, on both stores, from real files and a real web server."""

import pytest

from data.settings import FetchSettings
from minutebook.steps import StepFailed, StepOutcome, StepResult
from models.errors import LeaseLost
from tests.integration.data.steps.conftest import Work, from_files
from tests.web_source import Page, WebSource


def serve(work: Work, web: WebSource, body: bytes = b'[{"id": 1}]', **headers: str) -> None:
    """Let the only domain be what a page of a web server answers."""
    web.pages["/a.json"] = Page(body, headers=headers)
    work.apply(domains={"a": {"source": {"url": f"{web.url}/a.json"}}})


@pytest.fixture
def two(work: Work) -> Work:
    work.has(a="id,amount\n1,2.50\n2,4\n", b="id,amount\n7,1\n8,2\n")
    return work


def test_rows_of_every_domain_come_into_staging_and_production_stays(two: Work) -> None:
    result = two.refresh()

    assert result == StepResult(
        "rewrote a (2 rows), b (2 rows)",
        details={
            "run_type": "complete",
            "rewritten": ["a", "b"],
            "reused": [],
            "overtaken": [],
            "rows": {"a": 2, "b": 2},
            "failed": {},
            "left_out": {},
        },
    )
    assert two.staged() == [{"id": 1, "amount": 2.5}, {"id": 2, "amount": 4}]
    assert two.domains()["a"].production is None
    assert two.progress.phases == ["probe", "download", "import"]
    assert two.progress.reports[-1] == (2, 2, None)
    assert (two.progress.blocked, two.progress.run_type) == ({"import"}, "complete")
    assert two.progress.rewrites == ("a", "b")


def test_only_the_changed_file_is_rewritten(two: Work) -> None:
    two.refresh()
    two.write("b.csv", "id,amount\n7,1\n8,2\n9,3\n")

    result = two.refresh()

    assert result.message == "rewrote b (3 rows); reused a"


def test_force_rewrites_what_has_not_changed(two: Work) -> None:
    two.refresh()
    before = two.domains()["a"].staging

    result = two.refresh(domains=["a"], force="true")

    assert result.details["rewritten"] == ["a"]
    assert two.domains()["a"].staging != before


def test_a_lost_snapshot_file_is_made_again(two: Work) -> None:
    two.refresh(domains=["a"])
    for file in two.files():
        file.unlink()

    result = two.refresh(domains=["a"])

    assert result.details["run_type"] == "bootstrap"
    assert len(two.staged()) == 2


def test_another_source_is_read_though_its_file_looks_the_same(two: Work) -> None:
    two.refresh(domains=["a"])
    two.apply(domains={"a": from_files("b")["b"]})

    two.refresh(domains=["a"])

    assert two.staged()[0]["id"] == 7


def test_an_unknown_domain_is_named_before_anything_is_read(two: Work) -> None:
    with pytest.raises(StepFailed, match="domain 'aa' is not a known domain") as failed:
        two.refresh(domains=["b", "aa"])

    assert failed.value.permanent
    assert two.files() == []


def test_new_domains_are_taken_in_when_asked_for(two: Work) -> None:
    two.refresh(domains=["a"])

    assert two.refresh(domains="all", include_new_domains=False).message == "reused a"
    result = two.refresh(domains=["a"], include_new_domains=True)

    assert result.message == "rewrote b (2 rows); reused a"


def test_one_broken_domain_leaves_the_other_alone_and_is_partial(two: Work) -> None:
    two.refresh()
    two.write("a.csv", "id,amount\n1,2,3\n")
    two.write("b.csv", "id,amount\n9,9\n")

    result = two.refresh()

    assert result.outcome is StepOutcome.PARTIAL
    assert result.details["failed"] == {"a": "a.csv, line 2 ['1', '2', '3']: 3 cells, not 2"}
    assert len(two.staged()) == 2
    assert two.staged("b") == [{"id": 9, "amount": 9}]


def test_a_worker_that_lost_its_lease_moves_no_pointer(two: Work) -> None:
    operation_id = two.operation(attempt=2)

    with pytest.raises(LeaseLost):
        two.refresh({"operation_id": operation_id, "attempt": 1})

    assert two.domains()["a"].staging is None


def test_a_stop_keeps_what_is_done_and_is_partial(two: Work) -> None:
    def is_a_done() -> bool:
        return two.domains()["a"].staging is not None

    result = two.refresh({"should_stop": is_a_done})

    assert result.outcome is StepOutcome.PARTIAL
    assert result.message == "rewrote a (2 rows); stopped after 1 of 2"


def test_a_url_is_read_once_while_its_etag_stays(work: Work, web: WebSource) -> None:
    serve(work, web, b'[{"id": 1}, {"id": 2}]', ETag='"one"')

    first = work.refresh()
    second = work.refresh()

    assert (first.message, second.message) == ("rewrote a (2 rows)", "reused a")
    assert web.downloads("/a.json") == 1
    assert web.requests[-1] == ("/a.json", "bytes=0-0")


def test_a_changed_etag_is_read_again(work: Work, web: WebSource) -> None:
    serve(work, web, ETag='"one"')
    work.refresh()

    web.pages["/a.json"] = Page(b'[{"id": 1}, {"id": 2}]', headers={"ETag": '"two"'})

    assert work.refresh().message == "rewrote a (2 rows)"


def test_without_validators_it_is_read_each_time_but_not_kept_twice(
    work: Work, web: WebSource
) -> None:
    serve(work, web)

    work.refresh()
    result = work.refresh()

    assert web.downloads("/a.json") == 2
    assert result.message == "reused a"
    assert len(work.files()) == 1


def test_a_server_that_is_away_fails_open_and_then_says_why(work: Work, web: WebSource) -> None:
    work.apply(domains={"a": {"source": {"url": f"{web.url}/a.json?token=secret"}}})
    web.pages["/a.json?token=secret"] = Page(status=503)

    with pytest.raises(StepFailed, match=r"/a\.json answered 503") as failed:
        work.refresh()

    assert "secret" not in str(failed.value)
    assert not failed.value.permanent


def test_what_was_downloaded_can_be_imported_again_without_the_server(
    work: Work, web: WebSource
) -> None:
    serve(work, web)
    work.refresh()
    web.pages.clear()

    result = work.refresh({}, force=True, **{"from": "downloaded"})

    assert result.message == "rewrote a (1 row)"


def test_what_was_downloaded_from_another_place_is_not_taken_for_this_one_s(
    work: Work, web: WebSource
) -> None:
    web.pages |= {f"/{name}.json": Page(b'[{"id": 1}]') for name in ("old", "new")}
    work.apply(domains={"a": {"source": {"url": f"{web.url}/old.json"}}})
    work.refresh()
    work.apply(domains={"a": {"source": {"url": f"{web.url}/new.json"}}})

    with pytest.raises(StepFailed, match=r"/new\.json was not downloaded yet"):
        work.refresh({}, **{"from": "downloaded"})
    work.refresh()

    assert len(work.files("downloads")) == 1


def test_a_hostile_file_ends_by_its_limit_and_the_other_domain_is_refreshed(two: Work) -> None:
    (two.settings.effective_data_root / "a.csv").write_bytes(b"," * (128 << 20))

    result = two.refresh({"fetch": FetchSettings(memory_mb=256)})

    assert result.outcome is StepOutcome.PARTIAL
    assert result.details["failed"] == {
        "a": "a.csv needs more than SCHED_FETCH_MEMORY_MB=256 of memory; make it smaller, or raise "
        "SCHED_FETCH_MEMORY_MB"
    }
    assert result.details["rewritten"] == ["b"]
    assert not list((two.settings.home / "scratch").rglob("*.csv"))
    assert not list((two.settings.home / "scratch/shop").iterdir())
