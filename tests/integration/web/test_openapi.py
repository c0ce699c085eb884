"""The server does what its OpenAPI document says, whatever is sent: a generator tries it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from runtime.config import Settings
from runtime.sections.web import WorkSettings
from tests.integration.web.conftest import Serve, with_shop

# Streams do not end; `doctor` asks servers outside; probes answer 503 without a daemon.
LEFT_OUT = "events|doctor|healthz"
# A schema cannot say which names exist, or that two values belong together. A name may end in
# `:run`, so that such a path has the methods of an action too.
NOT_CHECKED = "positive_data_acceptance,allow_header_conformance"


def test_a_generator_finds_no_fault(
    home_of: Callable[[str], Settings],
    serve: Serve,
    tmp_path: Path,
) -> None:
    settings = home_of("sqlite")
    short = WorkSettings(pop_timeout_s=0.1)
    web = with_shop(serve(settings.model_copy(update={"work": short})))
    command = Path(sys.executable).with_name("schemathesis")
    tried = subprocess.run(
        [
            command, "run", f"{web.url}/openapi.json",
            "--header", f"Authorization: Bearer {web.token()}",
            "--max-examples", "5", "--generation-deterministic", "--phases", "coverage,fuzzing",
            "--exclude-path-regex", LEFT_OUT, "--exclude-checks", NOT_CHECKED,
            "--request-timeout", "30",
        ],
        cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip

    assert tried.returncode == 0, tried.stdout[-5000:]
    assert web.client().get("/api/status").status_code == 200


def test_every_field_of_every_answer_and_body_has_a_description(
    home_of: Callable[[str], Settings], serve: Serve
) -> None:
    web = with_shop(serve(home_of("sqlite")))
    document = web.client(role=None).get("/openapi.json").json()

    bare = [
        f"{name}.{field}"
        for name, schema in document["components"]["schemas"].items()
        for field, described in schema.get("properties", {}).items()
        if not described.get("description", "").strip()
    ]

    assert bare == []


def test_every_schema_that_is_referred_to_is_there(
    home_of: Callable[[str], Settings], serve: Serve
) -> None:
    web = with_shop(serve(home_of("sqlite")))
    document = web.client(role=None).get("/openapi.json").json()
    references: list[str] = []
    left: list[object] = [document]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            references += [one["$ref"]] if isinstance(one.get("$ref"), str) else []
            left += one.values()
        elif isinstance(one, list):
            left += one

    names = {one.removeprefix("#/components/schemas/") for one in references}
    assert names <= set(document["components"]["schemas"])
