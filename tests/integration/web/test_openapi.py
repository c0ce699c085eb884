"""The server does what its OpenAPI document says, whatever is sent: a generator tries it."""

import subprocess
import sys
from pathlib import Path

from services.installation import Installation
from tests.integration.web.conftest import Web
from web.app import make_app

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
