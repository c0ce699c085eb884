"""What an attempt reports, what it knows of the runs before, and how it ends when it must."""

import logging
from uuid import uuid4

import pytest
import sqlalchemy as sa

from models.operation import AttemptKey, OperationState
from models.store.operations.end import Outcome
from models.store.operations.heartbeat import NO_NEWS, ProgressUpdate, RunHistory
from tasks.lease import GIVEN_BACK, STOPPING, Lease
from tasks.progress import WRITTEN_EVERY_S, LineHandler, Progress
from tasks.step_context import WorkContext
from tasks.step_states import Script

ONE, TWO = {"message": "one"}, {"message": "two"}
ERROR = "the worker stopped while step load was running"
CUT_OFF = Outcome(OperationState.FAILED, error=ERROR, reason="cut off")


@pytest.fixture
def news() -> Progress:
    """What an attempt reports that is not written yet: nothing."""
    return Progress(sa.create_engine("sqlite://"), AttemptKey(uuid4(), 1, ""), Script({}))


def taken(news: Progress, *, waits: bool = False) -> ProgressUpdate:
    with news.being_written(waits=waits) as story:
        return story


def test_lines_and_the_last_value_of_each_column_are_written_once(news: Progress) -> None:
    news.append(ONE)
    news._put({"phase": "a", "processed": 1})
    news._put({"processed": 2})

    assert taken(news) == ProgressUpdate({"phase": "a", "processed": 2}, [ONE])
    assert (taken(news), news.lines()) == (NO_NEWS, [ONE])


def test_what_comes_while_others_are_written_is_written_next(news: Progress) -> None:
    news.append(ONE)
    news._put({"phase": "a"})
    with news.being_written(waits=False) as first:
        news.append(TWO)
        news._put({"phase": "b"})

    assert first == ProgressUpdate({"phase": "a"}, [ONE])
    assert taken(news) == ProgressUpdate({"phase": "b"}, [ONE, TWO])


def test_what_cannot_be_written_stays_new_and_does_not_hide_what_is_newer(news: Progress) -> None:
    def write() -> None:
        with news.being_written(waits=True):
            news._put({"phase": "b"})
            raise OSError("away")

    news.append(ONE)
    news._put({"phase": "a", "message": "first"})
    with pytest.raises(OSError, match="away"):
        write()

    assert taken(news) == ProgressUpdate({"phase": "b", "message": "first"}, [ONE])


def test_what_is_new_is_due_half_a_second_after_the_last_write(news: Progress) -> None:
    assert news.due_at() is None
    news._put({"processed": 1})

    assert news.due_at() == news._taken_at + WRITTEN_EVERY_S


def kept(news: Progress, *records: tuple[object, ...]) -> list[str]:
    """Return the messages that are kept of records: each a format and its values."""
    handler = LineHandler(news)
    for format, *values in records:
        handler.handle(logging.makeLogRecord({"msg": format, "args": tuple(values)}))
    return [one["message"] for one in news.lines() or ()]


def test_a_record_that_cannot_be_written_does_not_fail_its_step(
    news: Progress, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kept(news, ("%d rows", "no number"), ("done",)) == ["done"]
    assert "Logging error" in capsys.readouterr().err


def test_a_very_long_line_is_cut_off(news: Progress) -> None:
    assert kept(news, ("x" * 1_000_000,)) == ["x" * 10_000 + "…"]


def context_of(*known: RunHistory) -> WorkContext:
    """Return a context that reads `known` one after the other."""
    made = object.__new__(WorkContext)
    made.memory_source = iter(known).__next__
    return made


def test_what_is_asked_for_later_is_of_the_same_reading() -> None:
    context = context_of(RunHistory(3, None, {"page": 7}), RunHistory(4, None, {"page": 8}))

    assert context.run_number == 4
    # What no step asked for is not kept.
    assert not context.has_checkpoint
    assert (context.checkpoint, context.last_success_at) == ({"page": 7}, None)


def test_a_checkpoint_that_a_step_set_stays() -> None:
    context = context_of(RunHistory(3, None, {"page": 7}))
    context.checkpoint = {"page": 9}

    assert (context.run_number, context.checkpoint) == (4, {"page": 9})


@pytest.mark.parametrize(("step", "ending"), [(None, GIVEN_BACK), ("load", CUT_OFF)])
def test_an_operation_is_given_back_only_if_its_step_may_begin_twice(
    step: str | None, ending: Outcome
) -> None:
    one = object.__new__(Lease)
    one.interrupted_for, one.unrepeatable = STOPPING, step

    assert one.ending() == ending
