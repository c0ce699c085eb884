from typing import Any

import pytest
import sqlalchemy as sa

from models.stored import StoredSteps
from runtime.database import read_stored, written_json

DIALECT = sa.create_engine("sqlite://").dialect
BEGAN, ENDED = "2026-11-23T06:00:00+00:00", "2026-11-23T06:00:00.000123+00:00"
PLAIN = {"name": "refresh", "state": "success", "started_at": BEGAN, "finished_at": ENDED}


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(PLAIN, id="plain"),
        pytest.param(PLAIN | {"finished_at": "2026-11-23T05:59:59+00:00"}, id="set_back"),
        pytest.param({"name": "job", "state": "running", "started_at": ENDED}, id="running"),
        pytest.param({"name": "job", "state": "failed", "finished_at": ENDED}, id="not_begun"),
        pytest.param({"name": "own", "state": "waiting", "repeatable": False}, id="waiting"),
        pytest.param(PLAIN | {"message": "m", "error": "e", "details": {"n": [1]}}, id="full"),
    ],
)
def test_a_step_is_read_as_it_was_written(step: dict[str, Any]) -> None:
    stored = read_stored(written_json(StoredSteps().process_bind_param([step], DIALECT)))

    assert StoredSteps().process_result_value(stored, DIALECT) == [step]


def test_a_step_is_short() -> None:
    (stored,) = StoredSteps().process_bind_param([PLAIN], DIALECT)

    assert written_json(stored) == '["refresh","success",1795413600000000,123]'


@pytest.mark.parametrize(
    "stored",
    [
        *("text", 5, None, {}, PLAIN, [], ["a", "b"], [5, "b", None, None], ["a", "b", "c", None]),
        *(["a", "b", [], None], ["a", "b", 1e300, None], ["a", "b", 10**19, 1]),
        *(["a", "b", None, None, 5], ["a", "b", None, None, {}, {}]),
    ],
    ids=repr,
)
def test_a_step_of_another_shape_is_left_out(stored: object) -> None:
    found = StoredSteps().process_result_value([stored, ["a", "b", None, None]], DIALECT)

    assert found == [{"name": "a", "state": "b"}]
