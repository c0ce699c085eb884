"""A message that cannot be acknowledged: Celery's critical error becomes one calm line."""

import logging

import pytest
from kombu.message import Message

from broker.consumer import log_lost_connections_calmly


class UnreadablePlan:
    """A channel whose connection is gone."""

    no_ack_consumers = None

    def basic_ack(self, _tag: str, multiple: bool) -> None:
        raise ConnectionResetError(f"gone ({multiple})")


def test_it_is_logged_without_alarm_and_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log_lost_connections_calmly()
    caplog.set_level(logging.INFO)
    celery = logging.getLogger("celery.worker.request")

    Message(delivery_tag="1", channel=UnreadablePlan()).ack_log_error(celery, (ConnectionError,))

    [line] = caplog.records
    assert line.getMessage() == (
        "a connection broke before its message was acknowledged: the broker repeats it"
    )
    assert (line.levelname, line.exc_info) == ("INFO", None)


def test_other_errors_of_a_request_stay_as_they_are(caplog: pytest.LogCaptureFixture) -> None:
    log_lost_connections_calmly()

    logging.getLogger("celery.worker.request").critical("Couldn't reject %r", "1")

    assert [line.getMessage() for line in caplog.records] == ["Couldn't reject '1'"]
