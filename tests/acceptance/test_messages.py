"""The broker repeats messages, in any order and too late: an attempt runs once."""

from random import Random
from uuid import uuid4

import pytest

from tests.acceptance.installation import Installation
from tests.acceptance.processes import until

ONCE = [(1, "trace_one", "start"), (1, "trace_one", "end")]


def test_messages_delivered_three_times_in_any_order_run_each_attempt_once(
    installation: Installation,
) -> None:
    ids = [installation.operation(installation.action(f"due {number}")) for number in range(10)]
    installation.send()
    kept = installation.kept_messages()
    with installation.broker.client() as client:
        client.delete("minutebook.quick")
    shuffled = kept * 3
    Random(1).shuffle(shuffled)
    installation.put_messages(shuffled)

    workers = [installation.worker(concurrency=2), installation.worker(concurrency=2)]
    assert installation.all_end(ids) == ["success"] * 10
    Random(2).shuffle(shuffled)
    installation.put_messages(shuffled)
    until(
        lambda: sum(one.text().count("not started, taken") for one in workers) == 50,
        "every message but the first of each is passed over",
    )

    assert {(row["state"], row["attempt"]) for row in installation.rows()} == {("success", 1)}
    assert sorted(line.operation for line in installation.trace.starts()) == sorted(ids)


def test_a_message_of_an_old_attempt_starts_nothing_during_the_backoff(
    installation: Installation,
) -> None:
    retry = {"retry": {"max_attempts": 2, "backoff": ["PT1H"]}}
    action = installation.action(operations={"trace_one": {"fail": 1}}, policy=retry)
    id = installation.operation(action)
    installation.send()
    kept = installation.kept_messages()
    worker = installation.worker()
    before = installation.awaits(id, lambda row: row["attempt"] == 2)

    installation.put_messages(kept * 2)
    worker.said("not started, taken", times=2)
    installation.tick()

    assert installation.row(id) == before
    assert len(installation.trace.starts(id)) == 1
    installation.make_sendable(id)
    installation.send()
    installation.becomes(id, "success")
    assert [attempt for attempt, _, what in installation.trace.story(id) if what == "end"] == [2]


@pytest.mark.parametrize("store", ["sqlite"])
def test_messages_of_unknown_operations_are_passed_over(installation: Installation) -> None:
    action = installation.action()
    id = installation.operation(action)
    installation.send()
    kept = installation.kept_messages()
    worker = installation.worker()
    installation.becomes(id, "success")

    installation.put_messages(kept, id=uuid4())

    worker.said("not started, taken")
    until(installation.queue_is_empty, "all messages are taken")
