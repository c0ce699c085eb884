"""`job import --from-redis` reads the jobs of a scheduler that keeps them in Redis."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from models.job import id_of
from runtime.clock import utc_now
from tests.integration.cli.conftest import Call
from tests.servers import Broker

AHEAD = utc_now().replace(microsecond=0) + timedelta(hours=5)
URLS = tuple(f"https://example.com/{name}" for name in ("ahead", "late", "lost"))


@pytest.fixture
def filled(broker: Broker) -> Broker:
    """A Redis with three jobs: one is due later, one is late, one is in no schedule."""
    with broker.client() as client:
        for url in URLS:
            stored = {"id": id_of(url), "url": url, "interval_s": 3600, "meta": {"kind": "feed"}}
            client.hset("scraper:jobs", id_of(url), json.dumps(stored))
        scores = {id_of(URLS[0]): AHEAD.timestamp(), id_of(URLS[1]): 1_710_423_000}
        client.zadd("scraper:schedule", scores)
    return broker


def test_jobs_keep_their_ids_and_next_runs(call: Call, filled: Broker) -> None:
    before = utc_now()
    first = call("job", "import", "--from-redis", filled.url)
    second = call("job", "import", "--from-redis", filled.url)

    assert first.out == "3 jobs created, 0 changed, 0 unchanged\n"
    assert second.out == "0 jobs created, 0 changed, 3 unchanged\n"
    listed = {one["url"]: one for one in json.loads(call("--json", "job", "list").out)}
    assert {one["id"] for one in listed.values()} == {*map(id_of, URLS)}
    assert {one["interval_s"] for one in listed.values()} == {3600}
    assert [one["meta"] for one in listed.values()] == [{"kind": "feed"}] * 3
    next_at = [datetime.fromisoformat(listed[url]["next_run_at"]) for url in URLS]
    assert next_at[0] == AHEAD
    assert all(timedelta(0) < at - before < timedelta(minutes=1) for at in next_at[1:])
    assert next_at[0].tzinfo == UTC


@pytest.mark.only_here
def test_what_a_job_leaves_empty_is_as_it_is_left_out(call: Call, broker: Broker) -> None:
    stored = {"url": URLS[0], "interval_s": 0, "meta": None, "created_at": 1_710_423_000}
    with broker.client() as client:
        client.hset("scraper:jobs", id_of(URLS[0]), json.dumps(stored))

    call("job", "import", "--from-redis", broker.url)

    (listed,) = json.loads(call("--json", "job", "list").out)
    assert (listed["interval_s"], listed["meta"]) == (300, {})


@pytest.mark.only_here
def test_all_faults_are_named_and_nothing_is_stored(call: Call, filled: Broker) -> None:
    with filled.client() as client:
        client.hset("scraper:jobs", "broken", "{")
        client.zadd("scraper:schedule", {id_of(URLS[0]): "inf"})

    refused = call("job", "import", "--from-redis", filled.url)

    assert refused.code == 2
    assert "scraper:jobs broken: " in refused.err
    assert f"scraper:jobs {id_of(URLS[0])}: next_run_at" in refused.err
    assert json.loads(call("--json", "job", "list").out) == []


@pytest.mark.only_here
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--from-redis", "redis://u:hunter2@127.0.0.1:1/0"), "Redis cannot be read"),
        (("--from-redis", "http://u:hunter2@x"), "the URL is not understood"),
        ((), "write either --file FILE or --from-redis URL"),
        (("--file", "x", "--from-redis", "redis://x"), "write either --file FILE or"),
    ],
    ids=["away", "no_redis", "neither", "both"],
)
def test_what_cannot_be_read_is_refused(call: Call, options: tuple[str, ...], reason: str) -> None:
    refused = call("job", "import", *options)

    assert refused.code != 0
    assert reason in refused.err
    assert "hunter2" not in refused.err


@pytest.mark.only_here
def test_a_redis_without_jobs_is_refused(call: Call, broker: Broker) -> None:
    refused = call("job", "import", "--from-redis", broker.url)

    assert (refused.code, "Redis has no jobs in scraper:jobs" in refused.err) == (2, True)
