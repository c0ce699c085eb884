from collections.abc import Mapping
from typing import Any

import pytest

from models.action.document import load_action, parse_action, plan_of, stored_document
from models.parsing import ParseContext
from models.values.durations import format_span
from scheduler.changes.cycles import _remedy, cycle
from services.warnings import KnownNames, warnings_of
from tests.factories import STEPS
from tests.unit.models.action.minimal import NOW, action

CONTEXT = ParseContext("Europe/Paris", NOW, STEPS)
REFRESH = {"action": "refresh"}


def when_of(when: Any, **changes: Any) -> Any:
    return parse_action(action(when=when, **changes), CONTEXT)


@pytest.mark.parametrize(
    ("when", "stored", "ends", "delay"),
    [
        pytest.param({"after": REFRESH}, None, ("success",), "PT0S", id="success_at_once"),
        pytest.param(
            {"on": {**REFRESH, "ends": "failed"}},
            {"on": {**REFRESH, "ends": ["failed"]}},
            ("failed",),
            "PT0S",
            id="on",
        ),
        pytest.param(
            {"after": {**REFRESH, "ends": ["success", "partial"]}, "delay": "PT1H"},
            None,
            ("success", "partial"),
            "PT1H",
            id="delay",
        ),
    ],
)
def test_the_end_of_an_action_is_an_event(
    when: Any, stored: Any, ends: tuple[str, ...], delay: str
) -> None:
    model = when_of(when)
    trigger = plan_of(model).on_event

    assert trigger is not None
    assert (trigger.event, trigger.watched) == ("action refresh", "refresh")
    assert (trigger.ends, format_span(trigger.lag)) == (ends, delay)
    document = stored_document(model)
    assert document["when"] == (when if stored is None else stored)
    assert plan_of(load_action(document, steps=STEPS)) == plan_of(model)


def test_an_unknown_action_is_a_warning() -> None:
    model = when_of({"after": {"action": "refesh"}})

    assert warnings_of(model, KnownNames(actions={"refresh"})) == [
        'when "refesh": no action has this name now; did you mean "refresh"?'
    ]
    assert warnings_of(model, KnownNames(actions={"refesh"})) == []


@pytest.mark.parametrize(
    ("watched", "names", "found"),
    [
        ({}, ["a"], None),
        ({"a": "b", "b": "c", "c": "a"}, ["b"], ["b", "c", "a", "b"]),
        ({"x": "a", "a": "b", "b": "a"}, ["x"], ["a", "b", "a"]),
        ({"x": "z", "y": "z"}, ["x", "y"], None),
    ],
)
def test_a_cycle_is_found_from_any_of_its_names(
    watched: Mapping[str, str], names: list[str], found: list[str] | None
) -> None:
    assert cycle(watched, names) == found


def test_a_long_cycle_is_found_and_named_in_short() -> None:
    found = cycle({f"n{n}": f"n{(n + 1) % 2_000}" for n in range(2_000)}, ["n7"])

    assert found is not None
    assert (len(found), found[0], found[-1]) == (2_001, "n7", "n7")
    assert '"n11" after … after "n7";' in _remedy(found)
