"""publish, on both stores."""

from typing import Any

import pytest

from minutehand.steps import StepFailed, StepResult
from models.errors import LeaseLost
from models.parameters import PublishParameters, RefreshParameters
from tasks.steps import publish, refresh
from tests.integration.steps.conftest import Work

DOMAINS = {"a": {"source": {"file": "a.csv"}}, "b": {"source": {"file": "b.csv"}}}


@pytest.fixture
def staged(work: Work) -> Work:
    """Two domains, refreshed and not published."""
    work.apply(domains=DOMAINS)
    work.write("a.csv", "id\n1\n")
    work.write("b.csv", "id\n7\n8\n")
    refresh.run(work.context(RefreshParameters()))
    return work


def ran(work: Work, **parameters: Any) -> StepResult:
    """Run publish with the parameters as a document writes them."""
    return publish.run(work.context(PublishParameters.model_validate(parameters)))


def test_production_shows_what_staging_holds(staged: Work) -> None:
    result = ran(staged, data="true")

    assert result.message == "published a (1 rows), b (2 rows)"
    for domain in staged.domains().values():
        assert domain.production == domain.staging
        assert domain.published_at is not None


def test_only_named_domains_are_published(staged: Work) -> None:
    ran(staged, data=["b"])

    assert {d.name: d.production is not None for d in staged.domains().values()} == {
        "a": False,
        "b": True,
    }


def test_publishing_what_is_published_says_so(staged: Work) -> None:
    ran(staged, data=True)

    assert ran(staged, data=True).message == "a, b published already"


def test_nothing_staged_fails_and_names_the_domain(work: Work) -> None:
    work.apply(domains=DOMAINS)

    with pytest.raises(StepFailed, match="nothing is staged for a, b; refresh first"):
        ran(work, data=True)


def test_a_named_domain_without_a_snapshot_publishes_none_of_them(staged: Work) -> None:
    staged.apply(domains={**DOMAINS, "c": {"source": {"file": "c.csv"}}})

    with pytest.raises(StepFailed, match="nothing is staged for c"):
        ran(staged, data=["a", "c"])

    assert staged.domains()["a"].production is None


def test_everything_leaves_out_what_was_never_refreshed(staged: Work) -> None:
    staged.apply(domains={**DOMAINS, "c": {"source": {"file": "c.csv"}}})

    result = ran(staged, data=True)

    assert result.message == "published a (1 rows), b (2 rows); c never refreshed"


def test_an_unknown_domain_is_named(staged: Work) -> None:
    with pytest.raises(StepFailed, match="domain 'z' is not a known domain") as failed:
        ran(staged, data=["z"])

    assert failed.value.permanent


def test_a_damaged_snapshot_is_not_published(staged: Work) -> None:
    staging = staged.domains()["a"].staging
    assert staging is not None
    (staged.settings.home / staging.path).write_text("")

    with pytest.raises(StepFailed, match="staged snapshot of a is damaged"):
        ran(staged, data=True)

    assert staged.domains()["b"].production is None


def test_design_and_permissions_have_nothing_staged(work: Work) -> None:
    result = ran(work, design=True, permissions=True)

    assert result.message == "design: nothing staged; permissions: nothing staged"


def test_a_worker_that_lost_its_lease_publishes_nothing(staged: Work) -> None:
    operation_id = staged.operation(attempt=2)

    with pytest.raises(LeaseLost):
        publish.run(staged.context(PublishParameters(data=True), operation_id=operation_id))

    assert staged.domains()["a"].production is None
