"""Clients: minutebook.Client, the command line, and one that a generator makes by OpenAPI."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

import minutebook
from cli.remote.server import Remote
from minutebook.client import ENDED, Run
from models.errors import NotFound, Refused
from models.operation import ENDED as ALL_ENDED
from models.roles import Role
from services import runs, upcoming
from services.apps import changes as app_changes
from services.installation import Installation
from tests.integration.web.conftest import APP, NIGHTLY, Web
from web.app import make_app

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


def test_an_action_is_applied_run_and_explained(site: Web) -> None:
    token = site.token(Role.EDITOR, APP)
    with minutebook.Client(site.url, token) as client:
        (applied,) = client.apply([{**NIGHTLY, "name": "a/b c"}])
        ran = client.run(applied.uid, key="once")
        again = client.run(applied.uid, key="once", wait_s=0.1)
        explained = client.explain(applied.uid, NOON)

        assert (applied.name, applied.change, applied.revision) == ("a/b c", "created", 1)
        assert ran.id == again.id
        assert not again.has_ended
        assert client.get_operation_state(ran.id) == "queued"
        assert client.get_operation_state("nothing") == "unknown"
        assert explained.verdict == "not_an_occurrence"


def test_an_ended_operation_is_awaited(site: Web) -> None:
    token = site.token(Role.OPERATOR, APP)
    with minutebook.Client(site.url, token) as client:
        ran = client.run("nightly", key="x")
        site.client(Role.OPERATOR, APP).post(f"/api/operations/{ran.id}:cancel")

        assert client.run("nightly", key="x", wait_s=30) == Run(ran.id, "cancelled")


def test_a_refusal_has_all_faults(site: Web) -> None:
    with minutebook.Client(site.url, site.token(Role.EDITOR, APP)) as client:
        with pytest.raises(minutebook.ApiError, match="when") as wrong:
            client.apply([{**NIGHTLY, "when": {}}])
        with pytest.raises(ValueError, match="time zone"):
            client.explain("nightly", NOON.replace(tzinfo=None))
    stranger = minutebook.Client(site.url, "mbt_x")
    with stranger, pytest.raises(minutebook.ApiError, match="token") as unknown:
        stranger.run("nightly")

    assert (wrong.value.status, wrong.value.kind) == (422, "invalid-document")
    assert wrong.value.problems[0]["path"]
    assert unknown.value.status == 401


def test_an_answer_that_is_no_json_is_told(site: Web) -> None:
    with (
        minutebook.Client(site.url, site.token(Role.VIEWER, APP)) as client,
        pytest.raises(minutebook.ApiError, match="answered without JSON"),
    ):
        client.call("GET", "/sign-in")


def test_an_answer_without_content_is_none(site: Web) -> None:
    with minutebook.Client(site.url, site.token(Role.WORKER, APP)) as client:
        assert client.call("GET", "/healthz") is None
        assert client.call("GET", "/jobs/next") is None


def test_the_client_knows_every_state_that_ends() -> None:
    assert set(ALL_ENDED) == ENDED


FUTURE = "2199-01-01T00:00:00Z"
SEEN = {"event": "instance.user.last_seen", "user": "ann@example.com"}


def test_an_error_names_fields_and_parameters(site: Web) -> None:
    client = site.client()
    of_app = f"/api/apps/{APP}"
    on_event = {**NIGHTLY, "name": "seen", "when": {"on": "instance.user.last_seen"}}
    client.post("/api/actions", params={"app": APP}, json=on_event).raise_for_status()

    found = [
        client.patch(f"{of_app}/users/ann@example.com", json={"activated_at": FUTURE}),
        client.patch(f"{of_app}/users/ann@example.com", json={}),
        client.post(f"{of_app}/events", json={**SEEN, "at": FUTURE}),
        client.post(f"{of_app}/events", json={**SEEN, "id": "7"}),
        client.get("/api/actions", params={"app": APP, "all_apps": True}),
        client.get("/api/actions/nightly"),
        client.post("/api/actions/seen:run", params={"app": APP}),
        client.post("/api/actions/nightly:run", params={"app": APP, "user": "ann@example.com"}),
        client.delete(of_app),
        client.post(
            "/api/actions/nightly:plan-backfill", params={"app": APP, "from": FUTURE, "to": FUTURE}
        ),
    ]

    details = [one.json()["detail"] for one in found]
    assert [one for one in details if "--" in one] == []
    assert {one.status_code for one in found} <= {404, 409, 422}
    assert details[5].endswith(f"send app={APP}")
    assert details[8].endswith("send force=true")


def test_a_command_line_elsewhere_says_what_it_would_say_here(site: Web) -> None:
    server = Remote(site.url, site.token())
    of_shop = replace(server, app=APP)

    with pytest.raises(NotFound, match=f"add --app {APP}"):
        server.call(upcoming.show, "nightly")
    with pytest.raises(Refused, match="run it without --user"):
        of_shop.call(runs.run, "nightly", "ann@example.com")
    with pytest.raises(Refused, match="add --force"):
        server.call(app_changes.delete, APP, is_sure=False)
    of_shop.close()
    server.close()


# Streams do not end; `doctor` asks servers outside; probes answer 503 without a daemon.
LEFT_OUT = "events|doctor|healthz"
# A schema cannot say which names exist, or that two values belong together. A name may end in
# `:run`, so that such a path has the methods of an action too.
NOT_CHECKED = "positive_data_acceptance,allow_header_conformance"


def test_a_generator_finds_no_fault(site: Web, tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("schemathesis")
    tried = subprocess.run(
        [
            command, "run", f"{site.url}/openapi.json",
            "--header", f"Authorization: Bearer {site.token()}",
            "--max-examples", "5", "--generation-deterministic", "--phases", "coverage,fuzzing",
            "--exclude-path-regex", LEFT_OUT, "--exclude-checks", NOT_CHECKED,
            "--request-timeout", "30",
        ],
        cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip

    assert tried.returncode == 0, tried.stdout[-5000:]
    assert site.client().get("/api/status").status_code == 200


def test_every_field_of_every_answer_and_body_has_a_description() -> None:
    document = make_app(Installation()).openapi()
    bare = [
        f"{name}.{field}"
        for name, schema in document["components"]["schemas"].items()
        for field, described in schema.get("properties", {}).items()
        if not described.get("description", "").strip()
    ]

    assert bare == []


SCRIPT = Path(__file__).with_name("use_generated_client.py")
PACKAGE = "minutebook_client"
# The generator knows no JSON Lines. Where a body may also be JSON, its function sends JSON.
UNKNOWN_TO_IT = re.compile(r"Unsupported content.type application/jsonl")


def test_a_generated_client_makes_an_action_and_runs_it(site: Web, tmp_path: Path) -> None:
    document, settings = tmp_path / "openapi.json", tmp_path / "generator.json"
    document.write_text(site.client(role=None).get("/openapi.json").text)
    # Not formatted: nobody reads it.
    settings.write_text(json.dumps({"post_hooks": []}))
    generator = Path(sys.executable).with_name("openapi-python-client")
    made = subprocess.run(
        [
            generator, "generate", "--path", document, "--config", settings,
            "--meta", "none", "--output-path", tmp_path / PACKAGE,
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    used = subprocess.run(
        [sys.executable, "-P", SCRIPT, site.url, site.token()],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip

    assert used.returncode == 0, used.stderr[-5000:]
    _, *warnings = re.split(r"^(?:WARNING|ERROR|Unable) ", made.stdout + made.stderr, flags=re.M)
    assert [one for one in warnings if not UNKNOWN_TO_IT.search(one)] == []
