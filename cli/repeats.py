"""`minutehand operation rerun|retry|cancel`: what ended once more, what has not ended no more."""

from collections.abc import Callable
from typing import Annotated, Any
from uuid import UUID

import typer

from broker.app import configure
from broker.sending import Sent
from cli.invocation import Invocation, existing
from cli.operations import commands, operation_uuid
from cli.waiting import done_of, finish, say_unsent
from models.errors import NotFound, Refused
from models.operation import WENT_WELL, OperationState
from scheduler.on_demand import cancel as cancelling
from scheduler.on_demand import restart
from scheduler.on_demand.restart import Repeated

Ids = Annotated[list[str], typer.Argument(help="Ids of operations.", metavar="ID...")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for their ends.")]
Timeout = Annotated[float, typer.Option(min=0, help="Seconds to wait at most.")]
Repeat = Callable[..., tuple[Repeated, Sent]]


@commands.command("rerun")
def rerun(
    context: typer.Context, operation_ids: Ids, wait: Wait = False, timeout: Timeout = 3600.0
) -> None:
    """Run missed operations after all, under the current revision of their action."""
    _repeat_each(existing(context), operation_ids, restart.rerun, timeout if wait else None)


@commands.command("retry")
def retry(
    context: typer.Context, operation_ids: Ids, wait: Wait = False, timeout: Timeout = 3600.0
) -> None:
    """Try failed, partial or cancelled operations once more, under the current revision."""
    _repeat_each(existing(context), operation_ids, restart.retry, timeout if wait else None)


@commands.command("cancel")
def cancel(
    context: typer.Context, operation_ids: Ids, wait: Wait = False, timeout: Timeout = 3600.0
) -> None:
    """Cancel operations: at once what has not started; what runs is told to end."""
    invocation = existing(context)
    configure(invocation.settings)

    def act(id: UUID) -> dict[str, Any]:
        done = cancelling.cancel(invocation.engine, id, invocation.actor)
        return {"id": id, "state": done.state}

    shown = _each(operation_ids, act)
    for one in done_of(shown):
        is_asked = one["state"] == OperationState.RUNNING
        one["told"] = "asked to end" if is_asked else "cancelled"
    finish(invocation, shown, timeout if wait else None, {OperationState.CANCELLED})


def _repeat_each(
    invocation: Invocation, ids: list[str], again: Repeat, timeout_s: float | None
) -> None:
    configure(invocation.settings)
    unsent: list[Sent] = []

    def act(id: UUID) -> dict[str, Any]:
        done, sent = again(invocation.engine, id, invocation.actor)
        unsent.extend([sent] if sent.error else [])
        told = f"attempt {done.attempt}, revision {done.revision}"
        if done.revision != done.old_revision:
            told += f" (it was recorded with revision {done.old_revision})"
        return {"id": id, "state": OperationState.PENDING, "told": told} | {
            key: getattr(done, key) for key in ("attempt", "revision", "old_revision")
        }

    shown = _each(ids, act)
    if unsent:
        say_unsent(invocation, unsent[0])
    finish(invocation, shown, timeout_s, WENT_WELL)


def _each(ids: list[str], act: Callable[[UUID], dict[str, Any]]) -> list[dict[str, Any]]:
    """Do it to each by itself; what is refused has the key `refused`."""
    shown: list[dict[str, Any]] = []
    for text in dict.fromkeys(ids):
        try:
            shown.append(act(operation_uuid(text)))
        except (NotFound, Refused) as error:
            shown.append({"id": text, "refused": str(error)})
    return shown
