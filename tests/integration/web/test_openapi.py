"""The OpenAPI document is true: generators make requests and a client of it, and both work."""

import json
import os
import re
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


SCRIPT = Path(__file__).with_name("use_generated_client.py")
PACKAGE = "minutebook_client"
# The generator knows no JSON Lines. Where a body may also be JSON, its function sends JSON.
UNKNOWN_TO_IT = re.compile(r"Unsupported content.type application/jsonl")


def generate(web: Web, folder: Path) -> list[str]:
    """Write the client's package into a folder; return what the generator could not read."""
    document, settings = folder / "openapi.json", folder / "generator.json"
    document.write_text(web.client(role=None).get("/openapi.json").text)
    # Not formatted: nobody reads it.
    settings.write_text(json.dumps({"post_hooks": []}))
    command = Path(sys.executable).with_name("openapi-python-client")
    done = subprocess.run(
        [
            command, "generate", "--path", document, "--config", settings,
            "--meta", "none", "--output-path", folder / PACKAGE,
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    _, *warnings = re.split(r"^(?:WARNING|ERROR|Unable) ", done.stdout + done.stderr, flags=re.M)
    return warnings


def test_a_generated_client_makes_an_action_and_runs_it(site: Web, tmp_path: Path) -> None:
    warnings = generate(site, tmp_path)
    used = subprocess.run(
        [sys.executable, "-P", SCRIPT, site.url, site.token()],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip

    assert used.returncode == 0, used.stderr[-5000:]
    assert [one for one in warnings if not UNKNOWN_TO_IT.search(one)] == []
