"""A refresh that did only a part of its work is not published, unless the action says so."""

from typing import Any
from uuid import UUID

import pytest

import minutebook
from models.store import operations, tenants
from models.store.scope import WHOLE_INSTALLATION
from models.trust import TRUSTED
from scheduler.changes.change import create_all
from scheduler.on_demand.restart import retry
from tasks.execute import run_attempt
from tasks.registry import Registry
from tests.factories import author, make_document, make_operation, row_of
from tests.integration.data.steps.conftest import OCCURRENCE, Work
from tests.transactions import act

pytestmark = pytest.mark.usefixtures("own_steps")

DOMAINS = {name: {"source": {"file": f"{name}.csv"}} for name in ("a", "b")}


@pytest.fixture
def published(work: Work) -> Work:
    """Two domains with one row each, refreshed and published; then `a` gets a second row."""
    work.apply(domains=DOMAINS)
    act(work.engine, tenants.set_trust, work.app.id, TRUSTED)
    work.write("a.csv", "id\n1\n")
    work.write("b.csv", "id\n7\n")
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
