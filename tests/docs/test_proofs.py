"""docs/dev: each promise, each finding and each attack has its test, which CI runs."""

import re

from services.verdict import Kind
from tests.docs.pages import rows_of, text_of
from tests.hostile.attacks import attacks, named, places


def test_each_promise_and_each_finding_is_proven_by_a_test_that_ci_runs() -> None:
    rows = rows_of("dev/proofs")
    proofs = [(holds, named(tests)) for holds, tests in rows if tests != "test"]
    promises = re.findall(r"^- \*\*(.+)\.\*\*", text_of("explanation/promises"), re.M)
    events = [event for event, _ in rows_of("explanation/faults") if event != "event"]
    kinds = {name for holds, _ in proofs for name in re.findall(r"`(\w+)`", holds)}

    assert {*promises, *events} - {holds for holds, _ in proofs} == set()
    assert {*Kind} - kinds == set()
    assert [holds for holds, tests in proofs if not tests] == []
    assert {name for _, tests in proofs for name in tests} - {*places()} == set()


def test_each_attack_is_made_by_a_test() -> None:
    found = attacks()

    assert len(found) > 40
    assert all(tests for _, tests in found)
    assert {name for _, tests in found for name in tests} - {*places()} == set()
    assert len({number for number, _ in found}) == len(found)
