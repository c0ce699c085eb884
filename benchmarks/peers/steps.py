"""The step that Minutebook's workers run in `make bench-peers`: it notes that it ran."""

import os
from pathlib import Path

from pydantic import BaseModel

import minutebook
from runtime.clock import utc_now


class Entry(BaseModel):
    """Which entry of the benchmark an action stands for."""

    entry: str


@minutebook.step("peers_run", parameters=Entry)
def peers_run(context: minutebook.StepContext) -> None:
    """Note that a run of an entry arrived at a worker."""
    assert isinstance(context.parameters, Entry)
    with Path(os.environ["PEER_JOURNAL"]).open("a") as file:
        file.write(f"{utc_now().timestamp()} {context.parameters.entry}\n")
