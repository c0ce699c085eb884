"""Design and permissions in the document of a small app."""

from typing import Any

import pytest

from data.small_app.document import data_in
from data.small_app.staged import written
from models.tenant.document import LONGEST, InvalidSmallApp, parse_small_app


def problems(**changes: Any) -> dict[str, str]:
    with pytest.raises(InvalidSmallApp) as refused:
        parse_small_app({"name": "sales", **changes})
    return {problem.path: problem.remedy for problem in refused.value.problems}


def test_any_json_object_is_a_document() -> None:
    start = {"title": "Sales", "tiles": [{"of": "orders", "height": 2.5}], "dark": None}

    found = data_in(parse_small_app({"name": "sales", "design": {"start": start, "menu": {}}}))

    assert found.design == {"start": start, "menu": {}}
    assert found.permissions == {}


@pytest.mark.parametrize(
    ("value", "path", "remedy"),
    [
        pytest.param([], "", "write an object in { }", id="no_object"),
        pytest.param({"start": "blue"}, ".start", "write an object in { }", id="a_text"),
        pytest.param({"start": {"a": "x" * LONGEST}}, ".start", "is too long", id="too_long"),
        pytest.param({"../start": {}}, ".../start", "cannot begin with a dot", id="name"),
    ],
)
def test_what_is_wrong_is_named_with_its_path_and_the_remedy(
    value: Any, path: str, remedy: str
) -> None:
    ((found_path, found_remedy),) = problems(design=value).items()

    assert found_path == f"design{path}"
    assert remedy in found_remedy


def test_what_no_store_keeps_is_refused_inside_a_document_too() -> None:
    assert list(problems(design={"start": {"title": "a\0b"}})) == ["design.start.title"]


def test_the_order_of_keys_makes_no_other_document() -> None:
    assert written({"a": 1, "b": [2]}) == written({"b": [2], "a": 1})


@pytest.mark.parametrize("recipients", [{}, {"users": []}, {"include_inactive_users": True}])
def test_recipients_of_news_must_select_a_user(recipients: dict[str, Any]) -> None:
    found = problems(notify_recipients=recipients)

    assert 'write {"groups": ["all"]}' in found["notify_recipients"]
