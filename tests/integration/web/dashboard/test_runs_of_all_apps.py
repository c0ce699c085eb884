"""The list of runs of all small apps."""

import re

from services.apps import changes
from services.runs import run
from tests.integration.web.conftest import APP, Web
from tests.integration.web.dashboard.conftest import Browse


def test_the_list_and_the_api_name_the_small_app_of_each_run(
    web_on_sqlite: Web, browse: Browse
) -> None:
    changes.create(web_on_sqlite.opened, ("", {"name": "other", "zone": "UTC"}))
    run(web_on_sqlite.opened.for_request(APP, is_bound=True, bearer="tests"), "nightly")
    everything, bound = browse(web_on_sqlite), browse(web_on_sqlite, app=APP)
    cell = re.compile(r"<td>shop</td>")
    api = web_on_sqlite.client()

    assert cell.search(everything.get("/operations").text)
    assert not cell.search(everything.get("/operations", params={"app": APP}).text)
    assert not cell.search(bound.get("/operations").text)
    assert APP in api.get("/api/operations", params={"all_apps": True}).text
    assert APP not in api.get("/api/operations").text


def test_an_action_is_found_by_its_uid_whatever_its_small_app(web_on_sqlite: Web) -> None:
    ran = run(web_on_sqlite.opened.for_request(APP, is_bound=True, bearer="tests"), "nightly")
    everything, bound = web_on_sqlite.client(), web_on_sqlite.client(app=APP)
    operation = everything.get(f"/api/operations/{ran.id}").json()

    wanted = {"action": operation["action_uid"]}
    for client in (everything, bound):
        page = client.get("/api/operations", params=wanted).json()["items"]
        assert [one["id"] for one in page] == [operation["id"]]
