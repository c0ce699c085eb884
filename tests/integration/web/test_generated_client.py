"""A client that openapi-python-client generates from the OpenAPI document works with the server."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.integration.web.conftest import Web

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
