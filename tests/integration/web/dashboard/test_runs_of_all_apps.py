"""The list of runs of all small apps."""

import pytest

from tests.integration.web.conftest import APP, Web
from tests.integration.web.dashboard.conftest import Browse
from views import operations

FIRST = "runs of the first 1 small apps"


def test_small_apps_that_are_left_out_are_mentioned(
    web_on_sqlite: Web, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything, bound = browse(web_on_sqlite), browse(web_on_sqlite, app=APP)
    whole = everything.get("/operations").text
    monkeypatch.setattr(operations, "MOST_APPS", 1)

    assert FIRST not in whole
    assert FIRST in everything.get("/operations").text
    assert FIRST not in everything.get("/operations", params={"app": APP}).text
    assert FIRST not in bound.get("/operations").text
