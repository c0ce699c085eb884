"""The attacks of two hostile editors, and of the servers and files that they name.

Each is carried out against real code: by commands and operations on the installation of `Stage`, or
by the tests that make it. The table in docs/dev/attacks.md is made from this list.
"""

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any
from unittest.mock import patch

import httpx
import pytest
import sqlalchemy as sa

from models.tables import domains, ticks
from runtime.config import load_settings
from tests.acceptance import test_shared_broker as on_broker
from tests.acceptance.web_door import start_web
from tests.factories import make_document
from tests.fuzz import broker_items
from tests.fuzz.kept import kept
from tests.hostile import test_cut_sources as cuts
from tests.hostile import test_servers as servers
from tests.hostile.bounds import read_in_bounds
from tests.hostile.corpus import corpus
from tests.hostile.stage import APPS, Stage, failed, refused
from tests.hostile.viewers import memory_of, publish_many, statuses, viewers
from tests.integration.cli import test_scope as scope
from tests.integration.cli.test_apps import FAR
from tests.integration.data import test_downloads as downloads
from tests.integration.moving import test_django_beat as imports
from tests.integration.tasks.agent import test_agent_bounds as bounds
from tests.integration.tasks.agent import test_sidecar as sidecar
from tests.integration.tasks.agent.test_agent import ANSWER_S, Asked, serving
from tests.integration.web import test_aborted as aborted
from tests.integration.web.jobs import make_due, make_job
from tests.unit.models import test_celery_task as celery_tasks
from tests.unit.runtime import test_documents as documents
from tests.unit.runtime import test_references as references
from tests.unit.tasks.outgoing import test_addresses as addresses
from tests.unit.tasks.outgoing.mail import test_hostile_message as mails
from tests.web_source import web_source

OTHER = dict(zip(APPS, reversed(APPS), strict=True))
AUDITED = ("csv-commas", "json-one-wide-object", "json-deep", "gzip-twice", "csv-terminal")


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack: what is tried, what holds, the tests that make it, and how to carry it out.

    `carried_out` returns how it was held, and raises if it was not.
    """

    number: str
    tried: str
    holds: str
    tests: tuple[str, ...]
    carried_out: Callable[[Stage], str]


def _names_what_is_another_s(stage: Stage) -> str:
    for app, other in OTHER.items():
        sources: list[dict[str, Any]] = [
            {"file": f"{other}/salaries.csv"}, {"file": f"{app}/../{other}/salaries.csv"},
            {"sql": "SELECT 1 AS a", "connection": other}, {"reader": other},
            {"url": f"env:{other.upper()}_URL"},
        ]  # fmt: skip
        for source in sources:
            form = {"format": "csv"} if "url" in source else {}
            document = {"name": app, "domains": {"a": {"source": source, **form}}}
            said = refused(stage.apply(document))
    return said


def _is_named_by_sql(stage: Stage) -> str:
    stage.refresh("shop", {"file": "shop/salaries.csv"})
    source = sa.func.replace(domains.c.source, "shop/", "bakery/")
    with stage.installation.engine.begin() as connection:
        connection.execute(sa.update(domains).values(source=source))
    return failed(stage.ran("shop", "refresh the data", {"refresh": True}), "outside the folder")


def _link_leads_out(stage: Stage) -> str:
    for app, other in OTHER.items():
        link = stage.data / app / "link.csv"
        link.symlink_to(stage.data / other / "salaries.csv")
        said = failed(stage.refresh(app, {"file": f"{app}/link.csv"}), "outside")
    return said


def _step_of_users(stage: Stage) -> str:
    return refused(
        stage.add("shop", name="b", operations={"trace_one": True}), "app add shop --trusted"
    )


def _task(stage: Stage) -> str:
    celery_tasks.test_our_own_tasks_are_never_allowed()
    stage.call("app", "add", "shop", "--tasks", "*")
    own = {"celery_task": {"task": "execute_scheduled_action"}}
    refused(stage.add("shop", name="own", operations=own), "own workers")
    stage.call("app", "add", "shop", "--restricted", "--tasks", "shop.*")
    theirs = {"celery_task": {"task": "shop.close", "queue": "bakery"}}
    refused(stage.add("shop", name="queue", operations=theirs), "--queue bakery")
    others = {"celery_task": {"task": "bakery.close"}}
    return refused(stage.add("shop", name="task", operations=others), "--tasks bakery.close")


def _command(stage: Stage) -> str:
    programs: list[dict[str, Any]] = [{"run": ["/bin/sh", "-c", "id"]}, {"shell": "id"}]
    for program in programs:
        said = refused(stage.add("shop", name="c", operations={"command": program}), "--trusted")
    with patch.dict(os.environ, {"SCHED_COMMANDS": "/opt/*"}):
        stage.call("app", "add", "third", "--trusted")
        shell = {"command": {"shell": "id"}}
        refused(stage.add("third", name="c", operations=shell), "the word shell")
        programs = [
            {"run": ["/opt/../bin/sh"]}, {"run": ["./sh"], "cwd": "/bin"},
            {"run": ["/opt/x"], "env": {"LD_PRELOAD": "/tmp/x.so"}},
            {"run": ["/opt/x"], "env": {"GNUMAKEFLAGS": "--eval=$(shell id)"}},
            {"run": ["/opt/x"], "env": {"RESTIC_PASSWORD_COMMAND": "id"}},
            {"run": ["/opt/x(DAY)"], "env": {"DAY": "1"}},
        ]  # fmt: skip
        for program in programs:
            refused(stage.add("third", name="c", operations={"command": program}))
    return said


def _headers_for_the_broker(stage: Stage) -> str:
    stage.call("app", "add", "shop", "--tasks", "shop.*")
    for name in ("BCC", "CC"):
        task = {"task": "shop.sell", "headers": {name: ["bakery"]}}
        said = refused(stage.add("shop", name="copy", operations={"celery_task": task}))
        assert "is a header that brokers obey" in said
    return said


def _secret_for_another_host(_: Stage) -> str:
    references.test_a_bound_secret_goes_to_its_hosts_alone()
    return "a bound secret goes to its hosts only"


def _hook(stage: Stage) -> str:
    for hook in ({"notify": "ops"}, {"webhook": "env:BAKERY_URL"}):
        said = refused(stage.add("shop", name="hook", hooks={"on_success": [hook]}), "--trusted")
    return said


def _signature(stage: Stage) -> str:
    secrets = {stage.call("app", "hook-secret", app).out for app in APPS}
    assert len(secrets) == len(APPS), "both apps sign with one secret"
    return "each app signs with a secret of its own"


def _ids(stage: Stage) -> str:
    row = stage.ran("bakery", "secret plan", {"maintenance": True})
    theirs = {"uid": row["action_uid"], "id": row["id"], "document": "-"}
    commands = [one for one in scope.BY_ID if "{uid}" in one or "{id}" in one]
    for command in commands:
        arguments = [part.format(**theirs) for part in command]
        said = refused(stage.call("--app", "shop", *arguments))
        assert "secret plan" not in said
    return f"{len(commands)} commands; {said}"


def _maintenance(stage: Stage) -> str:
    old = {"daemon": "d", "duration_ms": 1, "report": {}}
    at = stage.installation.now().replace(year=2020)
    with stage.installation.engine.begin() as connection:
        connection.execute(sa.insert(ticks).values(now=at, finished_at=at, **old))
    row = stage.ran("shop", "keep house", {"maintenance": True})
    assert row["state"] == "success", row
    assert len(stage.installation.ticks()) == 1, "a tick of the installation was pruned"
    return "the installation's own history stays"


def _hostile_files(stage: Stage) -> str:
    found = [one for one in corpus() if one.name in AUDITED]
    for one in found:
        said = read_in_bounds(one.name, one.format, one.made, stage.folder)
    assert len(found) == len(AUDITED)
    return f"{len(found)} files, within memory and time; {said or 'read'}"


def _packed_response(stage: Stage) -> str:
    with web_source() as web, _folder() as folder:
        downloads.test_a_packed_response_is_refused_unread(web, folder, "gzip, gzip, gzip")
    return "a Content-Encoding is refused unread"


def _odd_files(stage: Stage) -> str:
    folder = stage.data / "shop"
    os.mkfifo(folder / "pipe.csv")
    os.link(stage.data / "bakery" / "salaries.csv", folder / "twin.csv")
    (folder / "device.csv").symlink_to("/dev/zero")
    for name in ("device.csv", "pipe.csv", "twin.csv"):
        said = failed(stage.refresh("shop", {"file": f"shop/{name}"}))
    return said


def _endless_document(stage: Stage) -> str:
    began = process_time()
    for text in ('["' + '\\"' * 20_000, "[" * 100_000):
        said = refused(stage.apply(text))
    documents.test_values_without_end_are_refused_in_seconds("- a\n" * 300_000)
    stage.apply({"name": "shop", **{f"zonf{n}": 1 for n in range(5_000)}})
    assert process_time() - began < 6, "it takes long"
    return said


def _endless_template(stage: Stage) -> str:
    texts = (
        "{% autoescape false %}{{ x }}{% endautoescape %}", "{{ 'a'|truncate(1, leeway=-5) }}",
        "{{ 'a' * 99999999 }}", "{{ '%99999999d' % 1 }}", "{{ ''.__class__ }}",
        "{% for a in 'a' %}" * 40, r"{{ '\ud800' }}",
    )  # fmt: skip
    for text in texts:
        template = {"subject": "s", "text": text}
        said = refused(stage.apply({"name": "shop", "templates": {"t": template}}), "templates.t")
    return said


def _mail(_: Stage) -> str:
    for payload in mails.PAYLOADS:
        mails.test_a_name_or_a_subject_adds_nothing(payload)
    return "each mail has its own headers and recipient, or is not sent"


def _endless_mail_server(_: Stage) -> str:
    servers.test_an_answer_without_end_is_cut_off(servers.without_end)
    servers.test_an_answer_without_end_is_cut_off(servers.in_one_line)
    servers.test_an_answer_that_trickles_has_the_time_of_one_answer()
    return "an answer has one size and one time"


def _speaking_web_server(_: Stage) -> str:
    with _folder() as folder:
        servers.test_the_reason_of_a_web_server_is_not_passed_on(folder)
        for answer in (b"\x1b]0;title\x07", b"HTTP/1.1 200 OK\r\n\x1b[2J: x\r\n\r\n"):
            servers.test_an_answer_that_is_no_http_has_an_error_of_ours(folder, answer)
    return "its text is not passed on"


def _terminal(stage: Stage) -> str:
    (stage.data / "shop" / "terminal.csv").write_bytes(b"\x1b[2Ja,a\n1,2,3\n\x9b31m,\xe2\x80\xae\n")
    row = stage.refresh("shop", {"file": "shop/terminal.csv"})
    done = stage.call("operation", "show", str(row["id"]))
    shown = f"{done.out}{stage.call('app', 'show', 'shop').out}{row['error']}"
    assert not set("\x1b\x9b\u202e\r") & set(shown), repr(shown)
    hidden = "a\u202eb"
    refused(stage.add("shop", name=hidden))
    return "what hides or breaks is escaped, and refused in names"


def _inside(stage: Stage) -> str:
    for host in ("169.254.169.254", "127.0.0.1:1", "[::1]", "168.63.129.16", "192.0.0.192"):
        row = stage.refresh("shop", {"url": f"http://{host}/a.csv"})
        said = failed(row, "leads to a private address")
    for spelt in ("127.1", "2130706433", "0x7f.1"):
        addresses.test_other_spellings_of_this_machine_are_refused(spelt)
    return said


def _secret_url(_: Stage) -> str:
    urls = (f"http://ann:{servers.SECRET}@127.0.0.1:1/a", f"http://[{servers.SECRET}]/a")
    with _folder() as folder:
        for url in urls:
            servers.test_a_secret_url_never_shows(folder, url)
    return "no error shows a part of it"


def _asks_over_http(stage: Stage) -> str:
    """Ask with an editor's token for everything of the other small app, and for trust."""
    web, address = start_web(stage.installation)
    asked = 0
    try:
        for app, other in OTHER.items():
            token = stage.installation.cli("--app", app, "token", "create", "--role", "editor")
            headers = {"Authorization": f"Bearer {token['token']}", "If-Match": "*"}
            with httpx.Client(base_url=address, headers=headers, timeout=60) as editor:
                for path in OF_AN_APP:
                    answer = editor.get(path.format(app=other))
                    assert answer.status_code == 404, (path, answer.text)
                    assert answer.json()["detail"] == f'small app "{other}" is unknown'
                    asked += 1
                trust = editor.patch(f"/api/apps/{app}/trust", json={"trusted": True})
                assert trust.status_code == 403, trust.text
                assert editor.get("/api/status").status_code == 403
                taken = editor.put(f"/api/apps/{other}", json={"name": other})
                assert taken.status_code == 404, taken.text
    finally:
        web.kill()
    return f"404 for {asked} addresses of the other app, 403 for trust and the installation"


def _broken_items(stage: Stage) -> str:
    with broker_items.opened() as check:
        inputs = kept("broker_items")
        for given in inputs.values():
            check(given)
    with _application(stage) as application:
        on_broker.test_no_broken_message_ends_a_worker(stage.installation, application)
    with _application(stage) as application:
        more = on_broker.test_a_message_that_says_more_than_ours_is_put_aside_and_runs_nothing
        more(stage.installation, application)
    return f"{len(inputs)} items and {len(on_broker.ITEMS)} to a running worker, which lives"


def _agent_s_peers(stage: Stage) -> str:
    path = stage.folder / "agent.sock"
    engine, settings = stage.installation.engine, stage.installation.settings
    for agent in serving(engine, settings, path, None):
        sidecar.test_a_line_without_end_closes_its_connection(agent, path)
        with closing(Asked(path).channel) as peer:
            told = peer.ask({"verb": "worker", **sidecar.SHOP, "pid": 10**30}, ANSWER_S)
        assert told["state"] == "refused", told
    for attack in (
        sidecar.test_connections_are_bounded_and_one_that_closes_makes_room,
        sidecar.test_a_connection_for_which_no_thread_can_start_takes_no_place,
    ):
        with pytest.MonkeyPatch.context() as patched:
            attack(patched, engine, settings, path)
    return "its connection is closed, and the others are served"


def _peer_names_another_s(stage: Stage) -> str:
    path = stage.folder / "bounds.sock"
    engine, settings = stage.installation.engine, stage.installation.settings
    for agent in serving(engine, settings, path):
        for kind in ({"maintenance": True}, bounds.JOB):
            given = (engine, settings, agent, path, kind)
            bounds.test_a_peer_touches_no_operation_of_another_kind(*given, "queued")
            stage.call("action", "delete", "other")
        bounds.test_a_worker_does_not_take_the_name_of_one_of_ours(engine, agent, path)
    return "every verb is refused, and no row changes"


def _guessed_lease(stage: Stage) -> str:
    """Take a job, and report it with what a viewer of its operation knows."""
    web, address = start_web(stage.installation)
    try:
        make_due(stage.installation.engine, make_job(stage.installation.engine))
        tokens = [
            stage.installation.cli("token", "create", "--role", role)["token"]
            for role in ("worker", "viewer")
        ]
        with httpx.Client(base_url=address, timeout=60) as client:
            worker, viewer = ({"Authorization": f"Bearer {token}"} for token in tokens)
            job = client.get("/jobs/next", headers=worker).json()
            shown = client.get(f"/api/operations/{job['operation_id']}", headers=viewer).text
            assert job["lease"].rpartition("-")[2] not in shown
            known = job["lease"].rpartition("-")[0]
            for guessed in (known, f"{known}-{'0' * 32}"):
                path, body = f"/jobs/{job['id']}/complete", {"lease": guessed}
                assert client.post(path, json=body, headers=worker).status_code == 404
    finally:
        web.kill()
    return "404, and the job goes on"


def _aborted(stage: Stage) -> str:
    web, address = start_web(stage.installation)
    try:
        for path in aborted.PATHS:
            head = f"POST {path} HTTP/1.1\r\nHost: x\r\n"
            form = "Content-Type: application/x-www-form-urlencoded\r\n"
            aborted.abort(address, f"{head}{form}Content-Length: 100\r\n\r\ntoken=x".encode())
        assert httpx.get(f"{address}/healthz", timeout=60).is_success
        assert "Traceback" not in web.text(), web.text()
    finally:
        web.kill()
    return "no traceback is logged"


def _named_host(stage: Stage) -> str:
    web, address = start_web(stage.installation)
    try:
        for path in ("/api/apps/", "/actions/", "//evil.example/"):
            answer = httpx.get(f"{address}{path}", headers={"Host": "evil.example"}, timeout=60)
            said = f"{answer.headers.get('location', '')}{answer.text}"
            assert "//evil.example" not in said, said
    finally:
        web.kill()
    return "no answer leads there"


def _strange_rows(_: Stage) -> str:
    changes: list[dict[str, Any]] = [{"args": 5}, {"start_time": "9999-12-31T23:59:59.5"}]
    for strange in changes:
        imports.test_a_row_that_only_sqlite_takes_does_not_end_the_import(strange, 1e30)
    return "it is reported, and the other rows are imported"


def _foreign_page(stage: Stage) -> str:
    """Send a change as a page of another port of the host does, with the visitor's session."""
    web, address = start_web(stage.installation)
    try:
        token = stage.installation.cli("token", "create", "--role", "admin")["token"]
        with httpx.Client(base_url=address, timeout=60) as browser:
            own = {"Sec-Fetch-Site": "same-origin"}
            assert browser.post("/sign-in", data={"token": token}, headers=own).status_code == 303
            for foreign in ({"Sec-Fetch-Site": "same-site"}, {"Origin": "http://127.0.0.1:1"}):
                answer = browser.post("/apps/bakery/pause", headers=foreign)
                assert answer.status_code == 403, answer.text
            assert browser.post("/apps/bakery/pause", headers=own).status_code == 303
            browser.post("/apps/bakery/resume", headers=own)
    finally:
        web.kill()
    return "it is refused"


def _cut_sources(stage: Stage) -> str:
    """Cut a file of each kind at every byte, and let a server end early at every byte."""
    with _folder() as folder:
        for kind in ("csv", "jsonl"):
            cuts.test_lines_are_imported_only_up_to_an_end(folder, kind)
        cuts.test_a_list_that_is_cut_anywhere_is_not_imported(folder)
        for kind in cuts.TEXTS:
            cuts.test_a_packed_file_that_is_cut_anywhere_is_not_imported(folder, kind)
    with _folder() as folder:
        cuts.test_a_parquet_file_that_is_cut_anywhere_is_not_imported(folder)
    with _folder() as folder:
        cuts.test_an_answer_that_ends_early_is_not_read(folder)
    (stage.data / "shop" / "cut.json").write_text('[{"id": 1},')
    return failed(stage.refresh("shop", {"file": "shop/cut.json"}), "does not end with ]")


def _greedy_editor(stage: Stage) -> str:
    """Send more previews than the server has threads; let a worker keep its job meanwhile."""
    engine = stage.installation.engine
    make_due(engine, make_job(engine, "https://example.com/kept"))
    daily = {"when": {"cron_rule": "0 3 * * *"}, "operations": {"maintenance": {}}}
    lines = "\n".join(json.dumps({"name": f"action {n}", **daily}) for n in range(1_500))
    web, address = start_web(stage.installation)
    try:
        with ExitStack() as stack:
            editor, worker = (
                stack.enter_context(_client(stage, address, *of))
                for of in (("shop", "editor"), ("default", "worker"))
            )
            job = worker.get("/jobs/next").json()
            preview = partial(editor.post, "/api/actions:preview?app=shop", content=lines)
            pool = stack.enter_context(ThreadPoolExecutor(16))
            asked = [pool.submit(preview, headers=JSON_LINES) for _ in range(16)]
            next(as_completed(asked))
            beat = worker.post(f"/jobs/{job['id']}/beat", json={"lease": job["lease"]})
            before = sum(one.done() for one in asked)
            assert beat.status_code == 200
            assert {one.result().status_code for one in asked} == {200}
    finally:
        web.kill()
    return f"{before} of 16 previews came before the answer to the worker"


def _client(stage: Stage, address: str, app: str, role: str) -> httpx.Client:
    token = stage.installation.cli("--app", app, "token", "create", "--role", role)["token"]
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=address, headers=headers, timeout=60)


def _greedy_viewers(stage: Stage) -> str:
    """Let fifty viewers download a large snapshot, and read nothing."""
    settings, engine = stage.installation.settings, stage.installation.engine
    publish_many(engine, settings, "shop")
    web, address = start_web(stage.installation)
    try:
        token = stage.installation.cli("--app", "shop", "token", "create", "--role", "viewer")
        before = memory_of(web.pid)
        with viewers(50, address, token["token"], "/api/apps/shop/data/big") as answers:
            grown = memory_of(web.pid).own - before.own
        assert statuses(answers) == {200: 2, 429: 48}, statuses(answers)
        assert grown < 50, f"the web process grew by {grown:.0f} MiB"
    finally:
        web.kill()
    return f"two are served, and the web process grew by {grown:.0f} MiB"


def _remote_control(stage: Stage) -> str:
    for attack in (
        on_broker.test_no_control_command_reaches_our_workers,
        on_broker.test_no_broken_broadcast_disturbs_a_worker,
    ):
        with _application(stage) as application:
            attack(stage.installation, application)
    return "no worker reads a broadcast"


@contextmanager
def _application(stage: Stage) -> Iterator[on_broker.Application]:
    made = on_broker.Application(stage.installation.settings.effective_broker_url)
    with closing(made.celery):
        try:
            yield made
        finally:
            # The next attack starts a worker, and an action, of its own.
            stage.installation.processes.kill_all()
            stage.call("action", "delete", "traced")


@contextmanager
def _folder() -> Iterator[Path]:
    with TemporaryDirectory() as name:
        yield Path(name)


OF_AN_APP = (
    "/api/apps/{app}", "/api/apps/{app}/status", "/api/apps/{app}/users",
    "/api/apps/{app}/templates", "/api/apps/{app}/data/salaries",
    "/api/actions?app={app}", "/api/operations?app={app}", "/api/steps?app={app}",
)  # fmt: skip

JSON_LINES = {"Content-Type": "application/jsonl"}
# What says that an attack was not held: a failed check, or any error of the code under attack.
BROKEN = (Exception, pytest.fail.Exception)


def _endless_growth(stage: Stage) -> str:
    many = [make_document(name=f"more {number}", when=FAR) for number in range(300)]
    file = stage.folder / "many.json"
    file.write_text(json.dumps(many))
    rows = "\n".join(os.urandom(32).hex() for _ in range(2**16))
    ceilings = {"SCHED_LIMITS_ACTIONS": "100", "SCHED_LIMITS_DISK_MB": "1"}
    home = stage.installation.settings.home
    stage.installation.settings = load_settings(home, {**os.environ, **ceilings})
    for app in APPS:
        with patch.dict(os.environ, ceilings):
            applied = stage.call("--app", app, "action", "apply", str(file))
            said = refused(applied, "is restricted to 100 actions")
            assert stage.add(app, name="one more").code == 0
        (stage.data / app / "large.csv").write_text(f"text\n{rows}\n")
        stored = stage.installation.settings.home / "snapshots" / app
        before = {*stored.rglob("*.parquet")}
        failed(stage.refresh(app, {"file": f"{app}/large.csv"}), "SCHED_LIMITS_DISK_MB")
        assert {*stored.rglob("*.parquet")} == before
    return said


ATTACKS = [
    Attack(
        "A1", "a document names another app's file, connection, reader or secret",
        "it is refused when saved",
        ("test_a_new_small_app_reaches_its_own_folder_alone",), _names_what_is_another_s,
    ),
    Attack(
        "A2", "the trust was taken back after the save, or the row was written by SQL",
        "the operation fails before it reads",
        ("test_a_source_beyond_a_restricted_app_is_not_read",), _is_named_by_sql,
    ),
    Attack(
        "A3", "a link inside the app's folder leads out of it", "it is not followed",
        ("test_a_source_beyond_a_restricted_app_is_not_read",), _link_leads_out,
    ),
    Attack(
        "A4", "a user-defined step of a restricted app", "it is refused, and does not run",
        ("test_a_step_of_users_does_not_run_for_a_restricted_app",), _step_of_users,
    ),
    Attack(
        "A5", "a Celery task or queue that the app was not given, or a task of Minutebook's own",
        "it is refused, and not sent",
        ("test_a_task_that_its_small_app_may_no_longer_send_is_not_sent",
         "test_our_own_tasks_are_never_allowed"), _task,
    ),
    Attack(
        "A6", "a secret is put into a header for another server",
        "it is sent to its own hosts only",
        ("test_a_bound_secret_goes_to_its_hosts_alone",), _secret_for_another_host,
    ),
    Attack(
        "A7", "a hook of a restricted app calls a secret URL, such as the installation's own, a "
        "private address or a chat, or mails without end", "nothing is sent",
        ("test_mail_of_a_hook_stays_below_the_ceiling",
         "test_a_webhook_behind_a_secret_is_not_called_for_a_restricted_app",
         "test_a_webhook_goes_to_no_private_address_for_a_restricted_app",
         "test_the_installation_s_own_receiver_is_not_lent_to_a_hook"), _hook,
    ),
    Attack(
        "A8", "a webhook of one app is replayed in another's name, or at another receiver",
        "its signature does not match", ("test_the_page_verifies_what_we_sign",), _signature,
    ),
    Attack(
        "A9", "the id of another app's action or operation, given with `--app`",
        "it is unknown, and nothing changes", ("test_another_small_app_is_unknown",), _ids,
    ),
    Attack(
        "A10", "`maintenance` of an app", "it prunes nothing of the installation",
        ("test_a_small_app_prunes_nothing_of_the_installation",), _maintenance,
    ),
    Attack(
        "A11", "an editor's token asks over HTTP for another app, for trust, for the installation",
        "the other app does not exist for it, and trust is not its to give",
        ("test_a_token_of_another_small_app_learns_nothing",
         "test_each_role_may_do_what_the_table_says",
         "test_an_editor_cannot_trust_or_make_small_apps"), _asks_over_http,
    ),
    Attack(
        "A12", "a command of a restricted app, or one that is not allowed, by another path, "
        "variable or folder",
        "it is refused, and does not run",
        ("test_a_program_has_to_be_allowed_at_save_and_at_run",
         "test_no_program_runs_for_a_restricted_small_app",
         "test_a_variable_that_replaces_the_program_is_refused",
         "test_no_other_text_allows_a_program_or_a_variable"), _command,
    ),
    Attack(
        "A13", "headers of a task's message that make the broker copy it into other queues",
        "they are refused", ("test_a_mistake_is_answered",), _headers_for_the_broker,
    ),
    Attack(
        "A14", "a peer of an agent's socket claims, resumes or ends an operation of another app, "
        "task or kind", "it is refused, and nothing changes",
        ("test_a_peer_touches_no_operation_of_another_kind",
         "test_a_peer_touches_no_task_that_its_small_app_may_not_send",
         "test_a_peer_touches_nothing_beyond_the_tasks_and_apps_of_its_agent",
         "test_another_agent_goes_on_where_one_died"), _peer_names_another_s,
    ),
    Attack(
        "A15", "a worker's token reports a job that another worker holds, by what a viewer sees",
        "its lease has a random part that nothing shows",
        ("test_a_lease_cannot_be_guessed_from_what_a_viewer_sees",
         "test_no_list_log_or_state_shows_a_lease",
         "test_jobs_that_are_taken_together_have_leases_of_their_own"), _guessed_lease,
    ),
    Attack(
        "B1", "239 hostile files: bombs in CSV, JSON, Parquet and gzip, endless cells, thousands "
        "of columns", "no child exceeds its memory or time; the worker goes on",
        ("test_no_small_file_exceeds_the_limits",
         "test_what_the_audit_found_ends_by_a_limit_that_is_named"), _hostile_files,
    ),
    Attack(
        "B2", "`Content-Encoding: gzip, gzip, gzip`", "it is refused unread",
        ("test_a_packed_response_is_refused_unread",), _packed_response,
    ),
    Attack(
        "B3", "a document of escapes, comments or unknown names without end",
        "it is refused in linear time",
        ("test_a_hostile_text_is_refused_in_linear_time",
         "test_hundreds_of_unknown_members_are_refused_at_once",
         "test_values_without_end_are_refused_in_seconds"), _endless_document,
    ),
    Attack(
        "B4", "a template that multiplies text, loops without end or reaches into Python",
        "it is refused when saved, by a child process with limits",
        ("test_what_templates_cannot_do_is_refused_at_once",
         "test_an_odd_template_is_a_problem_and_no_traceback",
         "test_a_template_that_makes_half_a_character_is_refused"), _endless_template,
    ),
    Attack(
        "B5", "a mail server that answers without end, or a byte at a time",
        "it has the time and the size of one answer",
        ("test_an_answer_without_end_is_cut_off",
         "test_an_answer_that_trickles_has_the_time_of_one_answer"), _endless_mail_server,
    ),
    Attack(
        "B6", "broken items in a queue, and messages with an ETA, a time limit, callbacks, other "
        "tasks or 10 MB",
        "they are moved to `minutebook.unknown`; no worker ends, and none waits",
        ("test_no_broken_message_ends_a_worker",
         "test_a_message_that_says_more_than_ours_is_put_aside_and_runs_nothing"), _broken_items,
    ),
    Attack(
        "B7", "`celery control shutdown`, or a broken broadcast",
        "no worker obeys it or reads it",
        ("test_no_control_command_reaches_our_workers",
         "test_no_broken_broadcast_disturbs_a_worker"), _remote_control,
    ),
    Attack(
        "B8", "a peer of an agent's socket that sends an endless line or an impossible process id, "
        "or opens more connections than there are threads",
        "its connection is closed, and workers go on",
        ("test_a_line_without_end_closes_its_connection",
         "test_a_worker_with_an_impossible_pid_keeps_no_other_off_the_record",
         "test_connections_are_bounded_and_one_that_closes_makes_room",
         "test_a_connection_for_which_no_thread_can_start_takes_no_place",
         "test_one_connection_holds_one_operation"), _agent_s_peers,
    ),
    Attack(
        "B9", "a row of another scheduler's database that no library could have written",
        "the row is reported, and the others are imported",
        ("test_a_row_that_only_sqlite_takes_does_not_end_the_import",), _strange_rows,
    ),
    Attack(
        "B10", "fifty viewers download a snapshot of millions of rows, and read nothing",
        "few are served at a time, by child processes; the memory of the web process stays",
        ("test_viewers_who_read_nothing_cost_no_memory",
         "test_a_download_ends_with_its_viewer"), _greedy_viewers,
    ),
    Attack(
        "B11", "a source that is cut at any byte: a file, a packed file, an answer of a server",
        "it fails, and nothing of it is imported",
        ("test_a_list_that_is_cut_anywhere_is_not_imported",
         "test_a_parquet_file_that_is_cut_anywhere_is_not_imported",
         "test_lines_are_imported_only_up_to_an_end",
         "test_a_packed_file_that_is_cut_anywhere_is_not_imported",
         "test_an_answer_that_ends_early_is_not_read"), _cut_sources,
    ),
    Attack(
        "B12", "an editor sends previews and imports, more than the server has threads",
        "workers have threads of their own, and keep their leases; pages wait",
        ("test_no_worker_loses_its_lease_to_the_requests_of_an_editor",), _greedy_editor,
    ),
    Attack(
        "B14", "an editor adds actions, or refreshes data, without end",
        "an app has so many actions and so much disk; a refresh beyond it leaves nothing",
        ("test_an_app_has_as_many_actions_as_the_ceiling_says",
         "test_a_refresh_whose_snapshot_has_no_room_fails_and_leaves_nothing",
         "test_a_download_that_has_no_room_is_cut_off_and_removed"), _endless_growth,
    ),
    Attack(
        "C1", "an encoded word in a name or subject that holds headers, recipients or a body",
        "the mail has its own headers alone, or is not sent",
        ("test_a_name_or_a_subject_adds_nothing",
         "test_what_the_library_lets_through_is_refused"), _mail,
    ),
    Attack(
        "C2", "a web server with control characters for the terminal in its reason or headers",
        "its text is not passed on",
        ("test_the_reason_of_a_web_server_is_not_passed_on",
         "test_an_answer_that_is_no_http_has_an_error_of_ours"), _speaking_web_server,
    ),
    Attack(
        "C3", "escapes, bidirectional marks and line breaks in errors, messages and log lines",
        "they are escaped where they are stored, logged and printed",
        ("test_every_column_for_errors_escapes_what_it_takes",
         "test_a_log_line_is_one_line",
         "test_a_test_mail_that_nobody_took_is_a_failure_whose_answer_hides_nothing"), _terminal,
    ),
    Attack(
        "C4", "a source or a redirect to an address of the inside",
        "it is refused before the connection",
        ("test_neither_a_source_nor_a_redirect_reaches_an_address_of_the_inside",), _inside,
    ),
    Attack(
        "C5", "FIFOs, devices, hard links, a file swapped between check and read",
        "it is refused, or the checked file is read",
        ("test_all_else_is_refused_at_once",
         "test_what_is_swapped_in_meanwhile_is_never_read"), _odd_files,
    ),
    Attack(
        "C6", "a secret URL that is broken in every way", "no error shows a part of it",
        ("test_a_secret_url_never_shows",), _secret_url,
    ),
    Attack(
        "C7", "a page of another origin sends a change with a visitor's session", "it is refused",
        (
            "test_a_change_comes_from_a_page_of_ours",
            "test_a_page_of_another_origin_changes_nothing_in_chromium",
        ),
        _foreign_page,
    ),
    Attack(
        "C8", "a request that names another host", "no redirect leads there",
        ("test_a_path_with_a_slash_too_many_is_not_found",
         "test_no_redirect_leads_to_another_server"), _named_host,
    ),
    Attack(
        "C9", "requests without a token that are aborted in their body",
        "no traceback fills the log", ("test_no_aborted_request_logs_a_traceback",), _aborted,
    ),
]  # fmt: skip
