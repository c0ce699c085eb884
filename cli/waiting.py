"""Wait for the end of operations, and say what the broker did not take."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

import sqlalchemy as sa
import typer

from broker.sending import Sent
from cli.invocation import Invocation
from cli.output import print_error, print_json, print_line
from models.operation import ENDED, OperationState
from models.store import operations
from runtime.clock import monotonic, wait_for
from runtime.database import reading


def wait_for_end(engine: sa.Engine, operation_id: UUID, timeout_s: float) -> OperationState | str:
    """Return the state of an operation once it has ended, or after `timeout_s` as it stands."""

    def state() -> OperationState | str:
        with reading(engine) as connection:
            return operations.get_operation_state(operation_id, connection)

    wait_for(lambda: state() in ENDED, timeout_s)
    return state()


def say_unsent(invocation: Invocation, sent: Sent) -> None:
    """Say on stderr that the broker is away, if it is: the daemon sends what waits."""
    if sent.error is not None:
        hint = "; is `minutehand up` running?" if invocation.settings.uses_embedded_broker else ""
        print_error(f"broker unavailable; the daemon sends it later{hint}")


def done_of(shown: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return those that were not refused."""
    return [one for one in shown if "refused" not in one]


def finish(
    invocation: Invocation,
    shown: list[dict[str, Any]],
    timeout_s: float | None,
    good: Collection[OperationState],
) -> None:
    """Wait if that was asked, print, and exit: 2 when nothing was done, 1 when not all is well.

    Each of `shown` is what became of one that was asked for: `refused` with the reason, or `id` of
    its operation, `state` and `told`.
    """
    done = done_of(shown)
    if timeout_s is not None:
        end = monotonic() + timeout_s
        for one in done:
            left_s = max(0.0, end - monotonic())
            one["state"] = wait_for_end(invocation.engine, one["id"], left_s)
    _print(invocation, shown, is_awaited=timeout_s is not None)
    is_well = timeout_s is None or all(one["state"] in good for one in done)
    if len(done) < len(shown) or not is_well:
        raise typer.Exit(1 if done else 2)


def _print(invocation: Invocation, shown: list[dict[str, Any]], *, is_awaited: bool) -> None:
    for one in shown:
        if "refused" in one:
            print_error(one["refused"])
    if invocation.as_json:
        print_json([{key: one[key] for key in one if key != "told"} for one in shown])
        return
    for one in done_of(shown):
        print_line(f"{one['id']}: {one['told']}{', ' + one['state'] if is_awaited else ''}")
