"""docs/reference: every setting, every endpoint, every state, field and reason of an operation."""

import re
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from data.services.status import DataStatus, PublicStatus
from models.fingerprint import str_to_uuid
from models.operation import OUTCOMES, OperationState, StepState
from models.store.operations.put_back import CANCELLED, STOPPED_IN_TIME, TIME_LIMIT
from models.store.operations.start_checks import EXPIRED
from models.tables import operations as operations_table
from runtime.config import load_settings, setting_paths, settings_model
from runtime.sections import Section
from runtime.sections.variables import NO_SETTINGS, PREFIX, named_settings, variable_of
from scheduler.decision import OVERTAKEN, TOO_LATE
from tasks.lease import GIVEN_BACK
from tests.docs.pages import pages_of, text_of
from web.app import api_routers
from web.problems import KNOWN

TEXT = text_of("reference/settings")
INDEX = pages_of("reference/settings")[0].read_text(encoding="utf-8")
ROWS = {
    variable: (key, default, meaning)
    for variable, key, default, meaning in re.findall(
        r"^\| `(SCHED_\w+)` \| `([\w.]+)` \| (.+?) \| (.+?) \|$", TEXT, re.M
    )
}
PATHS = [pytest.param(path, id=".".join(path)) for path in setting_paths()]


def _default(path: tuple[str, ...]) -> Any:
    kind: type[Section] = settings_model()
    for name in path[:-1]:
        annotation = kind.model_fields[name].annotation
        assert isinstance(annotation, type)
        assert issubclass(annotation, Section)
        kind = annotation
    return kind.model_fields[path[-1]].default


@pytest.mark.parametrize("path", PATHS)
def test_each_default_is_the_true_one(path: tuple[str, ...]) -> None:
    key, shown, meaning = ROWS[variable_of(path)]
    default = _default(path)

    assert (".".join(path), bool(meaning)) == (key, True)

    # A long expression is said in words too.
    if default is None or isinstance(default, SecretStr | Path | tuple) or path[-1] == "hide":
        assert not shown.startswith("`SCHED"), "what is taken when nothing is set is said in words"
    else:
        assert shown == f"`{str(default).lower() if isinstance(default, bool) else default}`"


def test_the_pages_name_no_other_variable() -> None:
    named = {f"{variable_of(path)}_NAME" for path in named_settings()}
    known = {variable_of(path) for path in setting_paths()} | set(NO_SETTINGS) | named
    written = set(re.findall(rf"{PREFIX}\w+", TEXT))

    assert written - known == set()


def test_the_index_leads_to_each_setting() -> None:
    rows = re.findall(r"^\| `(SCHED_\w+)` \| \[`([\w.]+)`\]\(([\w-]+)\.md", INDEX, re.M)

    assert [variable for variable, _, _ in rows] == sorted(ROWS)
    for variable, key, page in rows:
        assert f"\n| `{variable}` | `{key}` |" in text_of(f"reference/settings/{page}")


def test_the_quoted_refusal_is_the_real_one(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="SCHED_WORKER_LEASE_S") as refusal:
        load_settings(tmp_path, {"SCHED_WORKER_LEASE_S": "5"})

    assert f"error: {refusal.value}" in TEXT


def test_a_file_says_the_same_as_a_variable(tmp_path: Path) -> None:
    block = re.search(r"```yaml\n(.*?)```", TEXT, re.S)
    assert block is not None
    (tmp_path / "config.yaml").write_text(block[1])

    assert (
        load_settings(tmp_path, {}).worker
        == load_settings(tmp_path / "empty", {"SCHED_WORKER_QUICK": "4"}).worker
    )


HTTP = text_of("reference/http")
ENDPOINTS = {
    endpoint: (parameters, text)
    for endpoint, parameters, text in re.findall(
        r"^\| `([A-Z]+ /\S*)` \| (.*?) ?\| (.+?) \|$", HTTP, re.M
    )
}


def _section(heading: str) -> str:
    return HTTP.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


@cache
def operations() -> dict[str, Any]:
    """Return the operations by method and path; they take a second to make, so no import does."""
    app = FastAPI()
    for router in api_routers():
        app.include_router(router)
    return {
        f"{method.upper()} {path}": operation
        for path, methods in app.openapi()["paths"].items()
        for method, operation in methods.items()
    }


def test_the_pages_name_each_endpoint_and_no_other() -> None:
    assert set(ENDPOINTS) == set(operations())


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_each_endpoint_has_its_parameters_and_its_text(endpoint: str) -> None:
    parameters, text = ENDPOINTS[endpoint]
    operation = operations()[endpoint]
    named = [one["name"] for one in operation.get("parameters", []) if one["in"] == "query"]

    assert re.findall(r"`([\w-]+)`", parameters) == named
    assert text == operation["description"].splitlines()[0]


def test_a_page_describes_each_field_of_the_status_of_data() -> None:
    section = _section("The status of a small app's data")
    table, _, public = section.partition("`GET /status/{app}.json`")
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \|", table, re.M)
    described = [name for row in rows for name in re.findall(r"`([a-z_]+)`", row)]

    assert sorted(described) == sorted(DataStatus.model_fields)
    assert set(re.findall(r"`([a-z_]+)`", public)) >= set(PublicStatus.model_fields)


def test_a_page_names_each_problem() -> None:
    shown = set(re.findall(r"`([a-z]+(?:-[a-z]+)*)`", _section("Errors")))

    assert {kind for _, kind, _ in KNOWN.values()} <= shown


OPERATION = text_of("reference/operation")
# Shown in no view.
INTERNAL = {
    "small_app_id", "task", "overlap_key", "first_started_at", "backfill_id", "secret", "rewrites",
}  # fmt: skip


def _first_cells(heading: str) -> str:
    section = re.split(rf"^## {heading}$", OPERATION, flags=re.M)[1].split("\n## ")[0]
    return "\n".join(re.findall(r"^\| (`.+?) \|", section, re.M))


def test_the_page_has_each_state_and_no_other() -> None:
    named = set(re.findall(r"`(\w+)`", _first_cells("States")))

    assert named == set(OperationState) > OUTCOMES


@pytest.mark.parametrize(
    "column", sorted({one.name for one in operations_table.columns} - INTERNAL)
)
def test_each_field_has_a_row(column: str) -> None:
    assert f"`{column}`" in _first_cells("Fields")


@pytest.mark.parametrize(
    "reason",
    [
        TOO_LATE,
        f"{OVERTAKEN} by …",
        EXPIRED,
        *(end.reason for end in (GIVEN_BACK, CANCELLED, STOPPED_IN_TIME, TIME_LIMIT)),
    ],
)
def test_each_fixed_reason_has_a_row(reason: str) -> None:
    assert f"`{reason}`" in _first_cells("Reasons")


def test_each_state_of_a_step_is_named() -> None:
    assert all(f"`{state}`" in OPERATION for state in StepState)


def test_the_example_of_an_id_is_true() -> None:
    found = re.search(r"`([0-9a-f-]{36} \| [^`]+Z)` has the id `([0-9a-f-]{36})`", OPERATION)

    assert found is not None
    assert str_to_uuid(found[1]) == UUID(found[2])
