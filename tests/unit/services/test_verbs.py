"""A verb's route and body, and how what it answers is written."""

import json

import pytest

from models.roles import Permission
from services import users
from services.apps import changes
from services.jobs.claim import JobToDo
from services.jobs.work import JobStanding
from services.users import events
from services.verbs import VERBS, Verb, arguments_in_body
from services.view import View, json_line, json_text


def test_a_route_names_parts_and_parameters_other_than_their_arguments() -> None:
    verb = Verb("move", "PATCH /api/apps/{app}/users/{user=id}?force=is_sure", Permission.EDIT)

    assert (verb.method, verb.path) == ("PATCH", "/api/apps/{app}/users/{user}")
    assert verb.names == {"id": "user", "is_sure": "force"}
    assert verb.is_of_app


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        pytest.param(users.show, (), id="none"),
        pytest.param(users.update, ("changed",), id="a_model"),
        pytest.param(changes.create, ("document",), id="a_document"),
        pytest.param(changes.apply, ("documents",), id="documents"),
        pytest.param(events.send, ("event", "user", "id", "at"), id="keys_of_an_object"),
    ],
)
def test_the_body_has_these_arguments(function: object, expected: tuple[str, ...]) -> None:
    (found,) = (one for one in VERBS if one is function)

    assert arguments_in_body(found) == expected


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
