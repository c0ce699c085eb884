"""A worker of any language takes a job, keeps it, and reports it: once, and under its lease."""

import json
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from broker.in_use import settings_in_use
from models.job import id_of
from models.roles import Role
from models.sql import database_now
from models.store import notices, workers
from models.store.actions import explain_facts
from models.store.notices import overdue
from models.store.notices.alerting import NO_ALERTS
from models.store.operations import put_back, reserve
from models.store.operations.take import ClaimRequest
from models.store.workers import Heartbeat
from models.tables import operations as table
from runtime.clock import wait_for
from runtime.database import reading
from runtime.logs.events import Line
from runtime.sections import AlertSettings
from scheduler.changes import editing
from scheduler.explain.operation_text import waits
from scheduler.sweep import dispatch_ready
from services.apps import changes
from services.jobs import claim
from tests.factories import author, installation_on, make_operation, row_of, update_operation
from tests.integration.web.conftest import Serve, Web
from tests.integration.web.jobs import NOON, URL, make_due, make_job
from tests.servers import Broker
from tests.ticks import LEASE
from tests.transactions import act, fetched
from web.app import stop_waiting
from web.open_requests import MOST_OF_TOKEN

ID = id_of(URL)
OTHER = f"{URL}/other"
RETRY = {"max_attempts": 2, "backoff": ["PT1M"]}


def next_job(client: httpx.Client, **query: str) -> dict[str, object]:
    """Return a job, however often the time of a request ends before there is one."""
    while (answer := client.get("/jobs/next", params=query)).status_code == 204:
        pass
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def report(client: httpx.Client, verb: str, lease: object, **said: object) -> httpx.Response:
    return client.post(f"/jobs/{ID}/{verb}", json={"lease": lease, **said})


def test_a_queue_that_cannot_be_is_answered_with_what_to_write(desk: Web) -> None:
    refused = desk.client(Role.WORKER).get("/jobs/next", params={"queue": "\0"})

    assert refused.status_code == 422
    assert "write 1 to 64 of: lowercase letters" in refused.json()["detail"]


def test_a_worker_gets_a_job_and_completes_it(desk: Web, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "minutebook.jobs")
    id = make_due(desk.engine, make_job(desk.engine))
    client = desk.client(Role.WORKER)

    job = next_job(client)
    running = row_of(desk.engine, id)
    answer = report(client, "complete", job["lease"], result={"rows": 3}, message="3 rows")
    done = row_of(desk.engine, id)

    assert {key: job[key] for key in ("id", "url", "interval_s", "meta", "scheduled_at")} == {
        "id": ID, "url": URL, "interval_s": 300, "meta": {"depth": 2},
        "scheduled_at": "2027-01-04T12:00:00Z",
    }  # fmt: skip
    assert job["operation_id"] == str(id)
    assert (running["state"], running["steps"][0]["state"]) == ("running", "running")
    assert "token " in running["worker"]
    assert (answer.status_code, answer.content) == (204, b"")
    assert (done["state"], done["result"]) == ("success", {"job": {"rows": 3}})
    assert (done["steps"][0]["state"], done["steps"][0]["message"]) == ("success", "3 rows")
    (line,) = [one for one in caplog.records if one.message.startswith("job_complete")]
    assert isinstance(line.msg, Line)
    assert (line.msg.event, line.msg.values["job_id"]) == ("job_complete", ID)
    assert int(str(line.msg.values["duration_ms"])) >= 0
    assert any(one.message.startswith("poll_stats promoted_count=1") for one in caplog.records)


NONE = "0" * 32
GUESSED = ("{0.hex}-1", "{0.hex}-1-", f"{{0.hex}}-1-{NONE}", "{0}-1", "{0.hex}-1-x-y", f"{NONE}-1")


@pytest.mark.parametrize("verb", ["complete", "beat"])
def test_a_lease_cannot_be_guessed_from_what_a_viewer_sees(desk: Web, verb: str) -> None:
    id = make_due(desk.engine, make_job(desk.engine))
    lease = str(next_job(desk.client(Role.WORKER))["lease"])
    before = row_of(desk.engine, id)
    thief = desk.client(Role.WORKER)

    answers = [report(thief, verb, guessed.format(id)) for guessed in GUESSED]

    assert [answer.status_code for answer in answers] == [404] * len(GUESSED)
    assert not any(guessed.format(id) in one.text for one in answers for guessed in GUESSED)
    assert row_of(desk.engine, id) == before
    assert report(thief, verb, lease).status_code in {200, 204}


def test_no_list_log_or_state_shows_a_lease(desk: Web, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    id = make_due(desk.engine, make_job(desk.engine))
    lease = str(next_job(desk.client(Role.WORKER))["lease"])
    secrets = (lease, row_of(desk.engine, id)["secret"])

    viewer = desk.client(Role.VIEWER)
    paths = ("", "/logs", "/state", "/attempts")
    shown = [viewer.get(f"/api/operations/{id}{path}").text for path in paths]
    shown += [viewer.get("/api/operations").text, viewer.get("/api/apps/default/jobs").text]
    assert report(desk.client(Role.WORKER), "complete", lease).status_code == 204
    shown += [viewer.get(f"/api/operations/{id}").text, caplog.text]

    assert not [one for one in shown for secret in secrets if secret in one]
    assert str(id) in shown[0]


def test_jobs_that_are_taken_together_have_leases_of_their_own(desk: Web) -> None:
    ids = [make_due(desk.engine, make_job(desk.engine, f"{URL}/{n}")) for n in range(2)]
    wanted = [ClaimRequest(id, 1, "worker") for id in ids]

    taken = claim.take_all(installation_on(desk.engine, settings_in_use()), wanted).jobs

    tails = {job.lease.split("-", 2)[2] for job in taken.values()}
    assert len(tails) == 2
    forged = f"{ids[0].hex}-1-{taken[ids[1]].lease.split('-', 2)[2]}"
    path = f"/jobs/{taken[ids[0]].id}/complete"
    client = desk.client(Role.WORKER)
    assert client.post(path, json={"lease": forged}).status_code == 404
    assert client.post(path, json={"lease": taken[ids[0]].lease}).status_code == 204


def test_a_job_that_pings_owes_its_start(desk: Web) -> None:
    ping = {"url": "https://hc-ping.com/check/start", "at": ["start"]}
    id = make_due(desk.engine, make_job(desk.engine, hooks={"ping": [ping]}))
    installation, wanted = (
        installation_on(desk.engine, settings_in_use()),
        ClaimRequest(id, 1, "worker"),
    )

    assert not claim.take_all(installation, [wanted]).jobs
    assert claim.take(installation, wanted) is not None

    assert [row["kind"] for row in act(desk.engine, notices.of_operations, [id])] == ["run_started"]


def test_halves_of_characters_in_a_result_break_no_page(desk: Web) -> None:
    id = make_due(desk.engine, make_job(desk.engine))
    client = desk.client(Role.WORKER)
    lease = next_job(client)["lease"]
    result = r'{"a\ud800": ["\udc80b", "\ud83d\ude00", {"\\ud800": 1}]}'

    body = f'{{"lease": {json.dumps(lease)}, "result": {result}}}'
    assert client.post(f"/jobs/{ID}/complete", content=body).status_code == 204

    viewer = desk.client(Role.VIEWER)
    answer = viewer.get(f"/api/operations/{id}")
    assert answer.status_code == 200, answer.text
    shown = answer.json()["result"]["job"]
    assert shown == {"a\\ud800": ["\\udc80b", "😀", {"\\ud800": 1}]}
    assert viewer.get("/api/operations").status_code == 200


def listens(desk: Web) -> bool:
    return "minutebook.job:quick" in act(desk.engine, workers.listened_queues, LEASE)


@pytest.mark.parametrize("pop_timeout_s", [1.0])
def test_a_job_that_cannot_start_keeps_no_other_back(desk: Web) -> None:
    paused = make_job(desk.engine, "https://example.com/paused")
    refused = make_due(desk.engine, paused)
    editing.set_active(desk.engine, paused.uid, active=False, author=author())
    id = make_due(desk.engine, make_job(desk.engine))
    client = desk.client(Role.WORKER)

    job = next_job(client)

    assert job["operation_id"] == str(id)
    assert client.get("/jobs/next").status_code == 204
    assert row_of(desk.engine, refused)["state"] == "skipped"


@pytest.mark.parametrize("pop_timeout_s", [20.0])
def test_two_processes_hand_out_each_job_once(desk: Web, serve: Serve) -> None:
    count = 40
    second = serve(desk.opened.settings)
    clients = [desk.client(Role.WORKER), second.client(Role.WORKER)]
    with ThreadPoolExecutor(count) as pool:
        waiting = [pool.submit(next_job, clients[number % 2]) for number in range(count)]
        assert wait_for(lambda: listens(desk), 10)
        for number in range(count):
            make_due(desk.engine, make_job(desk.engine, f"https://example.com/{number}"))
        jobs = [one.result() for one in waiting]

    assert len({job["operation_id"] for job in jobs}) == count
    started = fetched(desk.engine, sa.select(table.c.attempt, table.c.state)).all()
    assert {tuple(one) for one in started} == {(1, "running")}


def test_an_error_is_retried_after_the_backoff(desk: Web, caplog: pytest.LogCaptureFixture) -> None:
    id = make_due(desk.engine, make_job(desk.engine, policy={"retry": RETRY}))
    client = desk.client(Role.WORKER)
    job = next_job(client)

    assert report(client, "error", job["lease"], error="timed out").status_code == 204
    again = row_of(desk.engine, id)
    assert (again["state"], again["attempt"], again["error"]) == ("pending", 2, "timed out")
    update_operation(desk.engine, id, not_before=database_now(-1.0))
    job = next_job(client)
    assert report(client, "error", job["lease"], error="timed out").status_code == 204

    assert row_of(desk.engine, id)["state"] == "failed"
    lines = [one.msg for one in caplog.records if one.message.startswith("job_error")]
    values = [one.values for one in lines if isinstance(one, Line)]
    assert [one["will_retry_at"] is None for one in values] == [False, True]
    assert [one["error"] for one in values] == ["timed out", "timed out"]
    assert all(one["next_run_at"] is not None for one in values)


@pytest.mark.parametrize(
    ("scheduled_at", "picked_up_at"),
    [
        pytest.param(1710423000, 1710423005, id="seconds"),
        pytest.param("2024-03-14T13:30:00Z", "2024-03-14T14:30:05+01:00", id="instants"),
    ],
)
def test_what_a_worker_measured_makes_the_figures(
    desk: Web, caplog: pytest.LogCaptureFixture, scheduled_at: object, picked_up_at: object
) -> None:
    caplog.set_level(logging.INFO, "minutebook.jobs")
    make_due(desk.engine, make_job(desk.engine))
    client = desk.client(Role.WORKER)
    measured = {"scheduled_at": scheduled_at, "picked_up_at": picked_up_at}

    answer = report(client, "complete", next_job(client)["lease"], **measured)

    assert answer.status_code == 204
    figures = figures_of(caplog, "job_complete")
    assert figures["wait_ms"] == 5_000
    assert int(str(figures["duration_ms"])) > 365 * 86_400_000


def test_times_that_a_worker_does_not_know_leave_what_is_recorded(
    desk: Web, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "minutebook.jobs")
    make_due(desk.engine, make_job(desk.engine))
    client = desk.client(Role.WORKER)

    lease = next_job(client)["lease"]
    wrong = report(client, "complete", lease, picked_up_at="yesterday")
    answer = report(client, "complete", lease, scheduled_at=0, picked_up_at=0)

    assert (wrong.status_code, answer.status_code) == (422, 204)
    assert 0 <= int(str(figures_of(caplog, "job_complete")["duration_ms"])) < 60_000


def figures_of(caplog: pytest.LogCaptureFixture, event: str) -> Mapping[str, object]:
    lines = [one.msg for one in caplog.records if isinstance(one.msg, Line)]
    (found,) = [one.values for one in lines if one.event == event]
    return found


def test_beats_and_progress_keep_the_lease(desk: Web) -> None:
    id = make_due(desk.engine, make_job(desk.engine))
    client = desk.client(Role.WORKER)
    lease = next_job(client)["lease"]
    update_operation(desk.engine, id, heartbeat_at=database_now(-100.0))

    beat = report(client, "beat", lease).json()
    progress = report(client, "progress", lease, done=1, total=4, message="a page", phase="read")
    row = row_of(desk.engine, id)
    lost = act(desk.engine, put_back.take_back_lost, LEASE, 10, NO_ALERTS)

    assert beat["stop"] is None
    assert 150 <= beat["time_left_s"] <= 160
    assert progress.status_code == 200
    assert (row["processed"], row["total"], row["progress"]) == (1, 4, 0.25)
    assert (row["message"], row["phase"]) == ("a page", "read")
    assert lost == []


def test_a_lost_worker_is_told_and_changes_nothing(desk: Web) -> None:
    id = make_due(desk.engine, make_job(desk.engine))
    slow, other = desk.client(Role.WORKER), desk.client(Role.WORKER)
    lost = next_job(slow)
    update_operation(desk.engine, id, heartbeat_at=database_now(-100.0))
    act(desk.engine, put_back.take_back_lost, LEASE, 10, NO_ALERTS)
    job = next_job(other)

    late = [report(slow, verb, lost["lease"], **said) for verb, said in REPORTS.items()]
    between = row_of(desk.engine, id)
    done = report(other, "complete", job["lease"])
    twice = report(other, "complete", job["lease"])

    assert job["operation_id"] == lost["operation_id"]
    assert [one.status_code for one in late] == [409] * 4
    assert late[0].json()["type"] == "urn:minutebook:problem:lease-lost"
    assert (between["state"], between["attempt"]) == ("running", 2)
    assert (done.status_code, twice.status_code) == (204, 204)
    assert row_of(desk.engine, id)["state"] == "success"


REPORTS: dict[str, dict[str, object]] = {
    "complete": {"result": {"late": True}},
    "error": {"error": "late"},
    "beat": {},
    "progress": {"done": 9},
}


@pytest.mark.parametrize(
    ("past", "said", "stop", "ended"),
    [
        pytest.param(
            {"heartbeat_at": -1}, {"permanent": True}, None, ("failed", None), id="permanent"
        ),
        pytest.param(
            {"cancel_requested_at": -1}, {}, "cancelled", ("cancelled", "cancelled"), id="cancelled"
        ),
        # Its limit is half its interval; it has some seconds more to stop.
        pytest.param(
            {"started_at": -151}, {}, "time limit", ("failed", "time limit"), id="too_long"
        ),
    ],
)
def test_an_error_after_which_a_job_must_not_go_on_is_not_retried(
    desk: Web, past: dict[str, int], said: dict[str, Any], stop: str | None, ended: tuple[str, str]
) -> None:
    id = make_due(desk.engine, make_job(desk.engine, policy={"retry": {"max_attempts": 5}}))
    client = desk.client(Role.WORKER)
    lease = next_job(client)["lease"]
    update_operation(desk.engine, id, **{name: database_now(s) for name, s in past.items()})

    told = report(client, "beat", lease).json()
    stopped = report(client, "error", lease, error="stopped half-way", **said)

    assert (told["stop"], stopped.status_code) == (stop, 204)
    row = row_of(desk.engine, id)
    assert (row["state"], row["reason"], row["error"]) == (*ended, "stopped half-way")


@pytest.mark.parametrize(
    ("column", "state"), [("started_at", "failed"), ("cancel_requested_at", "cancelled")]
)
def test_a_worker_that_does_not_stop_in_time_loses_the_job(
    desk: Web, column: str, state: str
) -> None:
    id = make_due(desk.engine, make_job(desk.engine))
    client = desk.client(Role.WORKER)
    lease = next_job(client)["lease"]
    update_operation(desk.engine, id, **{column: database_now(-3600.0)})

    assert report(client, "beat", lease).status_code == 409
    assert row_of(desk.engine, id)["state"] == state


@pytest.mark.parametrize("pop_timeout_s", [1.0])
def test_what_waits_for_a_job_is_released_by_its_end(desk: Web) -> None:
    action = make_job(desk.engine, policy={"catch_up": "all"})
    first, second = (make_due(desk.engine, action, number) for number in (0, 1))
    client = desk.client(Role.WORKER)
    job = next_job(client)
    assert job["operation_id"] == str(first)
    assert client.get("/jobs/next").status_code == 204

    report(client, "complete", job["lease"])

    assert next_job(client)["operation_id"] == str(second)


def test_a_report_over_four_kilobytes_is_refused(desk: Web) -> None:
    id = make_due(desk.engine, make_job(desk.engine))
    client = desk.client(Role.WORKER)
    lease = next_job(client)["lease"]

    answer = report(client, "complete", lease, message="x" * 4096)

    assert answer.status_code == 413
    assert row_of(desk.engine, id)["state"] == "running"


@pytest.mark.parametrize("body", [b"no JSON", b'{"lease": 1}'])
def test_a_report_that_is_none_is_refused(desk: Web, body: bytes) -> None:
    answer = desk.client(Role.WORKER).post(f"/jobs/{ID}/complete", content=body)

    assert answer.status_code == 422
    assert answer.json()["problems"]


def test_a_report_without_a_lease_counts_for_a_first_attempt_alone(desk: Web) -> None:
    id = make_due(desk.engine, make_job(desk.engine, policy={"retry": RETRY}))
    client = desk.client(Role.WORKER)
    nothing = client.post(f"/jobs/{ID}/complete", json={})
    next_job(client)

    failed = client.post(f"/jobs/{ID}/error", json={"error": "timed out"})
    update_operation(desk.engine, id, not_before=database_now(-1.0))
    lease = next_job(client)["lease"]
    unnamed = client.post(f"/jobs/{ID}/complete", json={})

    assert (nothing.status_code, failed.status_code, unnamed.status_code) == (404, 204, 409)
    assert "send its `lease`" in unnamed.json()["detail"]
    assert report(client, "complete", lease).status_code == 204
    assert row_of(desk.engine, id)["state"] == "success"


def test_a_worker_that_never_beats_keeps_its_job_until_its_time_limit(desk: Web) -> None:
    job = make_job(desk.engine, policy={"time_limit": "PT1H"})
    quiet, beats = make_due(desk.engine, job), make_due(desk.engine, make_job(desk.engine, OTHER))
    client = desk.client(Role.WORKER)
    leases = {one["operation_id"]: one["lease"] for one in (next_job(client), next_job(client))}
    assert client.post(f"/jobs/{id_of(OTHER)}/beat", json={"lease": leases[str(beats)]}).is_success
    long_ago = {"started_at": database_now(-600.0), "heartbeat_at": database_now(-600.0)}
    update_operation(desk.engine, quiet, **long_ago)
    update_operation(desk.engine, beats, heartbeat_at=database_now(-600.0))

    taken = act(desk.engine, put_back.take_back_lost, LEASE, 10, NO_ALERTS)

    assert [id for id, _ in taken] == [beats]
    assert report(client, "complete", leases[str(quiet)]).status_code == 204


@pytest.mark.parametrize("pop_timeout_s", [0.5])
def test_a_token_of_another_app_neither_gets_nor_reports_a_job(desk: Web) -> None:
    changes.create(desk.opened, ("", {"name": "other", "zone": "UTC"}))
    id = make_due(desk.engine, make_job(desk.engine))
    stranger, own = desk.client(Role.WORKER, "other"), desk.client(Role.WORKER, "default")

    assert stranger.get("/jobs/next").status_code == 204
    assert stranger.get("/jobs/next", params={"app": "default"}).status_code == 404
    lease = next_job(own)["lease"]
    assert report(stranger, "complete", lease).status_code == 404
    assert row_of(desk.engine, id)["state"] == "running"


def test_a_worker_that_goes_away_while_it_waits_takes_no_job(desk: Web) -> None:
    action = make_job(desk.engine)
    gone, there = desk.client(Role.WORKER), desk.client(Role.WORKER)
    with pytest.raises(httpx.ReadTimeout):
        gone.get("/jobs/next", timeout=0.5)
    assert wait_for(lambda: not desk.app.state.dispatcher._waiting, 10)

    id = make_due(desk.engine, action)

    assert next_job(there)["operation_id"] == str(id)
    assert row_of(desk.engine, id)["attempt"] == 1


@pytest.mark.parametrize("pop_timeout_s", [60.0])
def test_workers_that_wait_are_sent_away_when_the_server_stops(desk: Web) -> None:
    clients = [desk.client(Role.WORKER) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(one.get, "/jobs/next") for one in clients]
        assert wait_for(lambda: len(desk.app.state.dispatcher._waiting) == 3, 10)
        desk.app.state.dispatcher.stop()
        answers = [one.result(10) for one in waiting]

    assert [one.status_code for one in answers] == [503] * 3
    assert answers[0].json()["type"] == "urn:minutebook:problem:stopping"
    assert desk.client(Role.WORKER).get("/jobs/next").status_code == 503


def test_a_job_never_goes_to_the_broker(desk: Web, broker: Broker) -> None:
    id = make_operation(desk.engine, make_job(desk.engine), NOON)
    update_operation(desk.engine, id, not_before=database_now(-1.0))

    sent = dispatch_ready(desk.engine)

    assert (sent.count, sent.error) == (1, None)
    assert row_of(desk.engine, id)["state"] == "queued"
    assert broker.messages("quick") == []
    assert act(desk.engine, reserve.queued) == []


def test_explain_and_overdue_say_that_no_worker_asks(desk: Web) -> None:
    id = make_due(desk.engine, make_job(desk.engine))
    row = row_of(desk.engine, id)
    with reading(desk.engine) as connection:
        now = connection.execute(sa.select(database_now())).scalar_one()
        alone = waits(row, explain_facts.status(connection, LEASE), now, None)
    update_operation(desk.engine, id, cause="schedule", recorded_at=database_now(-3600.0))
    with desk.engine.begin() as connection:
        (found,) = overdue.alert(connection, AlertSettings(), 10)
        workers.beat(connection, Heartbeat("web/host/1", "job:quick", 1))
    listened = waits(row, act(desk.engine, explain_facts.status, LEASE), now, None)

    assert alone.endswith("but no worker listens to queue quick; start one")
    assert found[1] == "no worker asks for the jobs of queue quick"
    assert listened.endswith("for a free worker")


@pytest.mark.parametrize("pop_timeout_s", [30.0])
def test_a_token_holds_fifty_requests_open(desk: Web) -> None:
    client, other = desk.client(Role.ADMIN), desk.client(Role.WORKER)
    with ThreadPoolExecutor(MOST_OF_TOKEN + 1) as pool:
        waiting = [pool.submit(client.get, "/jobs/next") for _ in range(MOST_OF_TOKEN)]
        dispatcher = desk.app.state.dispatcher
        assert wait_for(lambda: len(dispatcher._waiting) == MOST_OF_TOKEN, 30)

        refused = client.get("/jobs/next")
        download = client.get("/api/apps/default/data/sales")
        others = pool.submit(other.get, "/jobs/next")
        assert wait_for(lambda: len(dispatcher._waiting) == MOST_OF_TOKEN + 1, 30)
        stop_waiting(desk.app)
        answers = {one.result(30).status_code for one in (*waiting, others)}

    assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
    assert "has 50 requests that wait for a job, or downloads; try again" in refused.text
    assert download.status_code == 429
    assert answers == {503}
    assert not desk.app.state.open_requests._open
