from datetime import UTC, datetime
from time import process_time
from typing import Any
from uuid import uuid4

import pytest

from services.actions import Revision
from services.actions.page import ActionPage, figures_of, last_trouble, since_when
from services.operations.last_runs import LastRun
from services.overview.errors import alike
from services.upcoming import Action
from tests.ticks import HOUR

DUE = datetime(2027, 1, 4, 12, tzinfo=UTC)


def runs(*states: str, took_s: float | None = None, why: str | None = None) -> tuple[LastRun, ...]:
    """Return runs of an hour each, the newest at DUE."""
    first = DUE - (len(states) - 1) * HOUR
    return tuple(
        LastRun(id=uuid4(), at=first + number * HOUR, state=state, took_s=took_s, why=why)
        for number, state in enumerate(states)
    )


def page(standing: str = "active", **known: Any) -> ActionPage:
    its: dict[str, Any] = {"standing": standing, "updated_at": DUE, "revision": 4}
    shown = Action.model_construct(**its)
    plain: dict[str, Any] = dict.fromkeys(ActionPage.__dataclass_fields__, ())
    return ActionPage(**{**plain, "shown": shown, **known})


def revision(number: int, **document: Any) -> Revision:
    its: dict[str, Any] = {"number": number, "document": document}
    return Revision.model_construct(**its, effective_from=DUE + number * HOUR)


def test_the_figures_are_of_what_ended() -> None:
    took = [runs("success", took_s=number)[0] for number in range(1, 20)]
    found = figures_of([*took, *runs("failed", took_s=100.0), *runs("running", "missed")])

    assert found is not None
    assert (found.median_s, found.p95_s, found.success) == (10.5, 19.0, 0.95)
    assert figures_of(runs("running", "missed")) is None


def test_the_last_error_is_counted_by_its_text() -> None:
    bad = runs("failed", "missed", "partial", why="no such host")
    other = runs("failed", why="the disk is full")
    found = last_trouble([*other, *bad, *runs("success")])

    assert found == (bad[-1], 3)
    assert last_trouble(runs("success", "skipped")) is None


@pytest.mark.parametrize(
    ("states", "hours"),
    [
        pytest.param(("success", "failed", "partial"), 1, id="since_the_first_that_failed"),
        pytest.param(("failed", "success", "skipped", "success"), 2, id="since_the_last_that_did"),
        pytest.param(("success", "running"), None, id="as_far_as_is_known"),
        pytest.param((), None, id="it_never_ran"),
    ],
)
def test_a_status_stands_since_its_first_run(states: tuple[str, ...], hours: int | None) -> None:
    found = since_when(page(runs=runs(*states)))

    assert found == (None if hours is None else DUE - hours * HOUR)


def test_a_pause_begins_with_the_first_revision_that_has_it() -> None:
    paused = (revision(4, active=False), revision(3, active=False), revision(2))

    assert since_when(page("paused", revisions=paused)) == DUE + 3 * HOUR
    assert since_when(page("paused", revisions=paused[:2])) is None
    older = (revision(3, active=False), revision(2))
    assert since_when(page("paused", revisions=older)) is None
    assert since_when(page("quarantined")) == DUE


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ("no printer in room 7", "no printer in room …"),
        ("  host-7: 12 of /tmp/a1/b", "… … of …"),
        ("no such host", "no such host"),
        ("KeyError('user_7')", "KeyError('user_7')"),
    ],
)
def test_words_with_a_digit_are_left_out_if_others_are_left(error: str, text: str) -> None:
    assert alike(error) == text


def test_an_error_of_one_long_word_is_read_once() -> None:
    began = process_time()
    alike("x" * 20_000)

    assert process_time() - began < 0.5
