"""publish, on both stores."""

from typing import Any
from uuid import UUID

import pytest

import minutebook
from minutebook.steps import StepFailed
from models.errors import LeaseLost
from models.store import operations, tenants
from models.store.scope import WHOLE_INSTALLATION
from models.trust import TRUSTED
from scheduler.changes.change import create_all
from scheduler.on_demand.restart import retry
from tasks.execute import run_attempt
from tasks.registry import Registry
from tests.factories import author, make_document, make_operation, row_of
from tests.integration.data.steps.conftest import OCCURRENCE, Work, from_files
from tests.transactions import act

DOMAINS = from_files("a", "b")


@pytest.fixture
def staged(work: Work) -> Work:
    work.imported(a="id\n1\n", b="id\n7\n8\n")
    return work


def test_production_shows_what_staging_holds(staged: Work) -> None:
    result = staged.publish(data="true")

    assert result.message == "published a (1 row), b (2 rows)"
    assert staged.progress.blocked == {"import", "publish"}
    for domain in staged.domains().values():
        assert domain.production == domain.staging
        assert domain.published_at is not None


def test_only_named_domains_are_published(staged: Work) -> None:
    staged.publish(data=["b"])

    published = {one.name: one.production is not None for one in staged.domains().values()}
    assert published == {"a": False, "b": True}


def test_nothing_staged_fails_and_names_the_domain(work: Work) -> None:
    work.apply(domains=DOMAINS)

    with pytest.raises(StepFailed, match="nothing is staged for a, b; refresh first"):
        work.publish(data=True)


def test_a_named_domain_without_a_snapshot_publishes_none_of_them(staged: Work) -> None:
    staged.apply(domains=from_files("a", "b", "c"))

    with pytest.raises(StepFailed, match="nothing is staged for c"):
        staged.publish(data=["a", "c"])

    assert staged.domains()["a"].production is None


def test_everything_leaves_out_what_was_never_refreshed(staged: Work) -> None:
    staged.apply(domains=from_files("a", "b", "c"))

    result = staged.publish(data=True)

    assert result.message == "published a (1 row), b (2 rows); c never refreshed"


def test_a_small_app_with_nothing_of_the_kind_says_so(work: Work) -> None:
    result = work.publish(design=True, permissions=True)

    assert result.message == "the small app has nothing to publish"


def with_documents(staged: Work) -> None:
    """Stage two documents of design, and one of permissions, beside the domains."""
    staged.apply(
        domains=DOMAINS,
        design={"start": {"color": "blue"}, "menu": {}},
        permissions={"sales": {"groups": ["manager"]}},
    )


def test_documents_are_published_with_the_data(staged: Work) -> None:
    with_documents(staged)

    result = staged.publish(data=True, design=True, permissions=["sales"])

    assert result.message == (
        "published a (1 row), b (2 rows); published design menu, start; published permissions sales"
    )
    assert staged.shown() == {
        "design": {"start": {"color": "blue"}, "menu": {}},
        "permissions": {"sales": {"groups": ["manager"]}},
    }
    again = staged.publish(data=True, design=True, permissions=["sales"])
    assert again.message == (
        "a, b already published; design menu, start already published;"
        " permissions sales already published"
    )


def test_a_document_that_was_left_out_is_removed_and_reported(staged: Work) -> None:
    with_documents(staged)
    staged.publish(design=True)
    staged.apply(domains=DOMAINS, design={"start": {"color": "blue"}})

    result = staged.publish(design=["menu", "start"])

    assert result.message == "removed design menu; design start already published"
    assert set(staged.shown()["design"]) == {"start"}


def test_an_unknown_document_publishes_nothing_and_the_nearest_is_named(staged: Work) -> None:
    with_documents(staged)

    with pytest.raises(StepFailed, match="design 'strat' is not a known design") as failed:
        staged.publish(data=True, design=["strat"])

    assert 'did you mean "start"?' in str(failed.value)
    assert failed.value.permanent
    assert staged.domains()["a"].production is None


def test_data_that_cannot_be_published_holds_the_documents_back(staged: Work) -> None:
    with_documents(staged)
    staging = staged.domains()["a"].staging
    assert staging is not None
    (staged.settings.home / staging.path).unlink()

    with pytest.raises(StepFailed, match="staged snapshot of a is damaged"):
        staged.publish(data=True, design=True)

    assert staged.shown()["design"] == {}


def test_everything_of_a_small_app_that_was_never_refreshed_is_its_documents(work: Work) -> None:
    work.apply(domains=DOMAINS, design={"start": {}})

    result = work.publish(data=True, design=True, permissions=True)

    assert result.message == "published design start; a, b never refreshed"


def test_a_worker_that_lost_its_lease_publishes_nothing(staged: Work) -> None:
    operation_id = staged.operation(attempt=2)

    with pytest.raises(LeaseLost):
        staged.publish({"operation_id": operation_id}, data=True)

    assert staged.domains()["a"].production is None


@pytest.fixture
def published(own_steps: None, work: Work) -> Work:
    """Two domains with one row each, refreshed and published; then `a` gets a second row."""
    work.has(a="id\n1\n", b="id\n7\n")
    act(work.engine, tenants.set_trust, work.app.id, TRUSTED)
    assert ran(work)["state"] == "success"
    work.write("a.csv", "id\n1\n2\n")
    return work


def ran(work: Work, publish: Any = True, **steps: Any) -> dict[str, Any]:
    wanted = {"refresh": True, "publish": publish, **steps}
    name = f"update {len(work.progress.phases)}"
    work.progress.phases.append(name)
    document = make_document(name=name, operations=wanted)
    action = create_all(work.engine, [document], author(Registry().steps, work.app))[0]
    id = make_operation(work.engine, action, OCCURRENCE, app=work.app)
    return attempted(work, id)


def attempted(work: Work, id: UUID, attempt: int = 1) -> dict[str, Any]:
    run_attempt(work.engine, work.settings, Registry(), (id, attempt), "tests")
    return row_of(work.engine, id)


def rows_shown(work: Work) -> dict[str, int | None]:
    return {
        name: one.production.row_count if one.production else None
        for name, one in work.domains().items()
    }


def states(row: dict[str, Any]) -> dict[str, str]:
    return {step["name"]: step["state"] for step in row["steps"]}


def test_a_failed_domain_leaves_production_as_it_was(published: Work) -> None:
    (published.settings.effective_data_root / "b.csv").unlink()

    row = ran(published)

    assert row["state"] == "partial"
    assert states(row) == {"refresh": "partial", "publish": "skipped"}
    assert "refresh ended partial" in row["steps"][1]["message"]
    assert '"after_partial": true' in row["steps"][1]["message"]
    assert rows_shown(published) == {"a": 1, "b": 1}
    lines = act(published.engine, operations.log_lines, row["id"])
    assert any("publish is left out" in line["message"] for line in lines)


def test_an_action_may_publish_what_there_is(published: Work) -> None:
    (published.settings.effective_data_root / "b.csv").unlink()

    row = ran(published, {"data": True, "after_partial": True})

    assert states(row) == {"refresh": "partial", "publish": "success"}
    assert row["state"] == "partial"
    assert rows_shown(published) == {"a": 2, "b": 1}


def test_steps_behind_it_run_and_their_own_partial_end_holds_nothing_back(
    published: Work,
) -> None:
    @minutebook.step("tell")
    def tell(context: minutebook.StepContext) -> minutebook.StepResult:
        return minutebook.StepResult("half", minutebook.StepOutcome.PARTIAL)

    assert states(ran(published, tell=True))["publish"] == "success"
    (published.settings.effective_data_root / "b.csv").unlink()
    assert states(ran(published, tell=True)) == {
        "refresh": "partial",
        "publish": "skipped",
        "tell": "partial",
    }


def test_a_retry_publishes_once_the_source_is_there_again(published: Work) -> None:
    source = published.settings.effective_data_root / "b.csv"
    text = source.read_text()
    source.unlink()
    row = ran(published)
    source.write_text(text)

    retry(published.engine, row["id"], WHOLE_INSTALLATION, "tests")
    row = attempted(published, row["id"], attempt=2)

    assert (row["state"], rows_shown(published)) == ("success", {"a": 2, "b": 1})
