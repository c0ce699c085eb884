"""What the readers of a small app see of its data."""

import json
from typing import Any

from tests.acceptance.installation import Installation


def published(installation: Installation, app: str, domain: str) -> list[dict[str, Any]]:
    """Return the rows of a domain's production."""
    command = installation.command("app", "data", app, domain)
    done = installation.processes.run(command)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
