"""A page of somebody else that polls the status of a small app's data."""

from dataclasses import dataclass, field
from typing import Any

import httpx

ACTIVE_S, IDLE_S = 1.5, 10.0


@dataclass
class PollingPage:
    """A page that polls: often while a run is active. Its time passes as the test lets it."""

    client: httpx.Client
    app: str
    passed_s: float = 0.0
    shown: dict[str, Any] = field(default_factory=dict)

    def poll(self) -> dict[str, Any]:
        """Return what the page shows after its next poll."""
        self.passed_s += ACTIVE_S if self.shown.get("status") == "running" else IDLE_S
        self.shown = self.client.get(f"/api/apps/{self.app}/status").raise_for_status().json()
        return self.shown

    def overlay(self) -> tuple[str, str | None, bool]:
        """Return the run's status and phase, and whether the overlay covers the data."""
        shown = self.poll()
        return shown["status"], shown["phase"], shown["blocking_maintenance"]
