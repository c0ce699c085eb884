import pytest

from models.roles import Permission
from services import users
from services.apps import changes
from services.users import events
from services.verbs import VERBS, Verb, arguments_in_body


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
