"""An error names what a request has; the command line of a server elsewhere keeps its own words."""

from dataclasses import replace

import pytest

from cli.remote.server import Remote
from models.errors import NotFound, Refused
from services import runs, upcoming
from services.apps import changes as app_changes
from tests.integration.web.conftest import APP, NIGHTLY, Web

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
            "/api/actions/nightly:plan-backfill",
            params={"app": APP, "from": FUTURE, "to": FUTURE},
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
