"""publish, on both stores."""

from typing import Any

import pytest

from data.store import documents as app_documents
from minutebook.steps import StepFailed
from models.errors import LeaseLost
from tests.integration.data.steps.conftest import Work
from tests.transactions import act

DOMAINS = {"a": {"source": {"file": "a.csv"}}, "b": {"source": {"file": "b.csv"}}}


@pytest.fixture
def staged(work: Work) -> Work:
    work.apply(domains=DOMAINS)
    work.write("a.csv", "id\n1\n")
    work.write("b.csv", "id\n7\n8\n")
    work.refresh()
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
    staged.apply(domains={**DOMAINS, "c": {"source": {"file": "c.csv"}}})

    with pytest.raises(StepFailed, match="nothing is staged for c"):
        staged.publish(data=["a", "c"])

    assert staged.domains()["a"].production is None


def test_everything_leaves_out_what_was_never_refreshed(staged: Work) -> None:
    staged.apply(domains={**DOMAINS, "c": {"source": {"file": "c.csv"}}})

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


def production(work: Work) -> dict[str, dict[str, Any]]:
    return act(work.engine, app_documents.shown, work.app.id, "production")


def test_documents_are_published_with_the_data(staged: Work) -> None:
    with_documents(staged)

    result = staged.publish(data=True, design=True, permissions=["sales"])

    assert result.message == (
        "published a (1 row), b (2 rows); published design menu, start; published permissions sales"
    )
    assert production(staged) == {
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
    assert set(production(staged)["design"]) == {"start"}


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

    assert production(staged)["design"] == {}


def test_everything_of_a_small_app_that_was_never_refreshed_is_its_documents(work: Work) -> None:
    work.apply(domains=DOMAINS, design={"start": {}})

    result = work.publish(data=True, design=True, permissions=True)

    assert result.message == "published design start; a, b never refreshed"


def test_a_worker_that_lost_its_lease_publishes_nothing(staged: Work) -> None:
    operation_id = staged.operation(attempt=2)

    with pytest.raises(LeaseLost):
        staged.publish({"operation_id": operation_id}, data=True)

    assert staged.domains()["a"].production is None
