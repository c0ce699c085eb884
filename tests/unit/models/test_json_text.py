import json
from datetime import UTC, datetime
from time import process_time

import pytest

from models.json_text import DEEPEST, LARGEST_NUMBER, InvalidJson, read_json, unstorable
from tests.tables import table


@pytest.mark.parametrize(
    ("text", "path", "remedy"),
    [
        *table(__file__, "a_refusal_names_the_place"),
        pytest.param("9" * 5000, "document", "too large", id="huge"),
        pytest.param("[" * 34 + "]" * 34, "[0]" * 33, "too deep", id="deep"),
        pytest.param("[" * 100_000, "document", "too deep", id="very_deep"),
        pytest.param('"' + "a" * 262_144 + '"', "document", "262144", id="too_long"),
        pytest.param(b"\xff\xfe{}", "document", "UTF-8", id="not_utf8"),
    ],
)
def test_a_refusal_names_the_place(text: str | bytes, path: str, remedy: str) -> None:
    with pytest.raises(InvalidJson) as refused:
        read_json(text)

    (problem,) = refused.value.problems
    assert path == problem.path
    assert remedy in problem.remedy


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('\ufeff{"a": 1}', {"a": 1}),
        (b'\xef\xbb\xbf{"a": "\xc3\xa9"}', {"a": "é"}),
        ("[" * 32 + "]" * 32, json.loads("[" * 32 + "]" * 32)),
        ('{"a": "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["}', {"a": "[" * 36}),
        ("9223372036854775807", LARGEST_NUMBER),
        ("-1.5e3", -1500.0),
    ],
)
def test_json_is_read(text: str | bytes, value: object) -> None:
    assert value == read_json(text)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": "x\0"}, "a"),
        ({"a": ["\ud800"]}, "a[0]"),
        ({"a\0b": 1}, "a\ufffdb"),
        ({"a": float("nan")}, "a"),
        ({"a": {"b": 2**63}}, "a.b"),
        ({"a": datetime(2026, 1, 1, tzinfo=UTC)}, "a"),
        ({1: 2}, "1"),
        (b"bytes", "document"),
    ],
)
def test_an_unstorable_value_is_named(value: object, path: str) -> None:
    assert [path] == [problem.path for problem in unstorable(value)]


def test_a_value_that_is_too_deep_is_named_once() -> None:
    value: object = 1
    for _ in range(5000):
        value = [value]

    (problem,) = unstorable(value)
    assert problem.path == "document" or problem.path.count("[0]") == DEEPEST + 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('["' + '\\"' * 100_000, id="open_text"),
        pytest.param("/**/" * 60_000 + "x", id="comments"),
        pytest.param("{" + ",".join(f'"a{n}":1,"a{n}":1' for n in range(11_000)) + "}", id="twice"),
    ],
)
def test_a_hostile_text_is_refused_in_linear_time(text: str) -> None:
    began = process_time()

    with pytest.raises(InvalidJson) as refused:
        read_json(text)

    assert process_time() - began < 1
    assert len(str(refused.value)) < 10_000


def test_each_key_that_occurs_twice_in_an_object_is_named() -> None:
    with pytest.raises(InvalidJson) as refused:
        read_json('[{"b": {"c": 1}, "b": 1, "a": 1, "a": 2}]')

    assert [one.path for one in refused.value.problems] == ["b", "a"]
