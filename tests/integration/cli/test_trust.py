"""`minutebook app add NAME --trusted`: how far a small app is trusted, and what it may name."""

from typing import Any

import pytest

from tests.integration.cli.conftest import Call, Write
from tests.tables import table

TRUST_IT = "an admin of the installation can allow it by `minutebook app add shop --trusted`"


@pytest.mark.parametrize(
    ("source", "remedy"),
    table(__file__, "a_new_small_app_reaches_its_own_folder_alone"),
)
def test_a_new_small_app_reaches_its_own_folder_alone(
    call: Call, write: Write, source: dict[str, Any], remedy: str
) -> None:
    domain = {"source": source, **({"format": "csv"} if "url" in source else {})}

    done = call("app", "apply", write({"name": "shop", "domains": {"a": domain}}, "shop.json"))

    assert done.code == 2
    assert remedy in done.err
    assert call("app", "show", "shop").code == 2
