from typing import Any

import pytest
from amqp.serialization import dumps
from pydantic import ValidationError

from data.steps.refresh import RefreshParameters
from models.action.steps import OperationModel
from models.parsing import Reading
from tests.factories import STEPS


def read(document: dict[str, Any]) -> OperationModel:
    return OperationModel.model_validate(document, context=Reading(steps=STEPS))


def test_refresh_takes_everything_from_the_source_by_default() -> None:
    found = RefreshParameters.model_validate({})

    assert (found.domains, found.force, found.from_) == ("all", False, "source")
    assert found.takes_new_domains
    assert not found.model_copy(update={"domains": ["a"]}).takes_new_domains


@pytest.mark.parametrize("headers", [{"n": "x" * 16_000}, {"n": [1] * 5_000}, {"ü" * 50: {}}])
def test_headers_together_are_bounded(headers: dict[str, Any]) -> None:
    """A message of AMQP holds them in less than half a frame."""
    assert read({"celery_task": {"task": "t", "headers": headers}})

    more = {**headers, "m": [1] * 6_000}
    with pytest.raises(ValidationError, match=r"too large \(.*write at most 16,384"):
        read({"celery_task": {"task": "t", "headers": more}})
    assert len(dumps("F", (headers,))) < 65_536


def test_a_job_s_meta_has_at_most_four_kilobytes() -> None:
    step = {"url": "https://example.com/feed", "meta": {"x": "y" * 4088}}

    assert read({"job": step})
    with pytest.raises(ValidationError, match=r"too long \(4097 bytes as JSON\)"):
        read({"job": {**step, "meta": {"x": "y" * 4089}}})


def test_the_number_of_steps_is_limited() -> None:
    with pytest.raises(ValidationError) as refused:
        read({f"s{n}": True for n in range(101)})

    (only,) = refused.value.errors()
    assert only["msg"].endswith("has 101 steps; write at most 100")
