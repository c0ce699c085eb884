"""How numbers of a view are written."""

import pytest

from views.jobs.taking import JobToDo
from views.jobs.work import JobStanding


@pytest.mark.parametrize(("time_left_s", "written"), [(45.0, "45"), (0.0, "0"), (4.25, "4.25")])
def test_whole_seconds_are_written_as_a_whole_number(time_left_s: float, written: str) -> None:
    standing = JobStanding(stop=None, time_left_s=time_left_s)

    assert standing.model_dump_json() == f'{{"stop":null,"time_left_s":{written}}}'


def test_seconds_are_numbers_of_an_answer() -> None:
    schema = JobToDo.model_json_schema(mode="serialization")["properties"]

    assert schema["lease_s"]["type"] == "number"
    assert {one["type"] for one in schema["interval_s"]["anyOf"]} == {"integer", "null"}
