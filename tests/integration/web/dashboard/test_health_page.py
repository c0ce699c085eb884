"""The health page shows the disk of the home folder."""

from tests.integration.web.conftest import Web
from tests.integration.web.dashboard.conftest import Browse


def test_the_page_shows_what_the_home_folder_takes_and_what_is_left(
    web_on_sqlite: Web, browse: Browse
) -> None:
    page = browse(web_on_sqlite).get("/health").text

    assert " in the home folder, " in page
    assert "<dt>database</dt><dd>" in page
