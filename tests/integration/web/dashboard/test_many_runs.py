"""Many runs from the list: those selected or all that match, a plan first, then exactly that."""

import re

import httpx
import pytest

from models.roles import Role
from tests.integration.web.conftest import APP, Web
from tests.integration.web.dashboard.conftest import Browse, make_failed


def state_of(web: Web, id: str) -> str:
    client = web.client(Role.VIEWER)
    return str(client.get(f"/api/operations/{id}/state").json()["state"])


@pytest.mark.parametrize(("more", "count"), [({}, 2), ({"all": "1"}, 3)], ids=["some", "all"])
def test_runs_are_retried_after_a_plan_and_no_others(
    site: Web, browser: httpx.Client, more: dict[str, str], count: int
) -> None:
    ids = make_failed(site, 3)
    path, form = "/operations?state=failed", {"verb": "retry"}

    asked = browser.post(path, data={**form, "id": ids[:2], **more})
    planned = re.findall(r'name="id" value="(.*?)"', asked.text)
    before = state_of(site, ids[0])
    done = browser.post(path, data={**form, "id": planned, "sure": "1"}, follow_redirects=True)

    assert f"Retry {count} runs?" in asked.text
    assert (before, sorted(planned)) == ("failed", sorted(ids[:count]))
    assert f"{count} runs are being retried." in done.text
    assert [state_of(site, id) for id in ids[count:]] == ["failed"] * (3 - count)


@pytest.mark.parametrize("digits", [8, 36])
def test_an_id_in_the_search_opens_its_run(site: Web, browse: Browse, digits: int) -> None:
    (id,) = make_failed(site, 1)
    whole, own = browse(site), browse(site, app=APP)

    found, theirs = (one.get("/operations", params={"q": id[:digits]}) for one in (whole, own))

    assert (found.status_code, found.headers["location"]) == (303, f"/operations/{id}")
    assert theirs.status_code == 200
