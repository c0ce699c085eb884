"""Notices in short: what each of them tells."""

from collections.abc import Mapping
from typing import Any


def told_as(row: Mapping[Any, Any]) -> str:
    """Return what a notice tells: a moment of a run, a finding, or that a finding is over."""
    if row["kind"] == "run_ended":
        return "success" if row["payload"]["state"] == "success" else "failure"
    if row["kind"] == "run_started":
        return "start"
    found = row["payload"]["findings"][0]["kind"].removeprefix("action_")
    return found if row["kind"] == "finding_began" else f"{found} over"
