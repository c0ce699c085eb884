import json

import pytest

from services.jobs.claim import JobToDo
from services.jobs.work import JobStanding
from services.view import View, json_line, json_text


@pytest.mark.parametrize(("time_left_s", "written"), [(45.0, "45"), (0.0, "0"), (4.25, "4.25")])
def test_whole_seconds_are_written_as_a_whole_number(time_left_s: float, written: str) -> None:
    standing = JobStanding(stop=None, time_left_s=time_left_s)

    assert standing.model_dump_json() == f'{{"stop":null,"time_left_s":{written}}}'


def test_seconds_are_numbers_of_an_answer() -> None:
    schema = JobToDo.model_json_schema(mode="serialization")["properties"]

    assert schema["lease_s"]["type"] == "number"
    assert {one["type"] for one in schema["interval_s"]["anyOf"]} == {"integer", "null"}


class Named(View):
    name: str
    tags: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("name", "written"),
    [("Zoë", "Zoë"), ("a\u202eb", "a\\u202eb"), ("half \ud83d", "half \\ud83d")],
)
def test_texts_are_written_as_they_are_without_what_hides(name: str, written: str) -> None:
    view = Named(name=name)

    assert json_text(view) == f'{{\n  "name": "{written}",\n  "tags": []\n}}'
    assert json_line(view) == f'{{"name": "{written}", "tags": []}}'
    assert json.loads(json_text(view)) == json.loads(json_line(view)) == {"name": name, "tags": []}
