"""Run an action now; retry and cancel operations."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from minutebook.steps import Recipient
from models.action.document import load_action
from models.action.plan import readable
from models.errors import NotFound
from models.operation import OperationState
from models.sql import read_clock
from models.store import operations
from models.store.actions.search import ActionFilter
from models.store.actions.status import plan_in
from models.store.people import users
from models.stored import document_in
from runtime.database import reading
from runtime.plug_ins import added
from scheduler.on_demand import cancel as cancelling
from scheduler.on_demand import manual, restart
from services.actions.search import chosen
from services.installation import Installation
from services.lookup import app_of, find, named_elsewhere, operation_of, scope_of
from services.runs.outgoing import Outgoing, outgoing_of
from services.verbs import OPERATE, Verb
from services.view import Instant, Listing, View
from services.warnings import action_warnings
from tasks.built_in import built_in_steps

Notify = Annotated[
    bool | None,
    Field(description="Whether a step mails what it leaves to you; without it the action decides."),
]


class RequestedRun(View):
    """An operation that a user requested, and its state."""

    id: UUID = Field(description="Id of the operation.")
    state: str = Field(description="Its state now.")
    # False if the command waited for it and it did not succeed.
    succeeded: bool = Field(True, exclude=True)
    # Whether the command waited for it in vain.
    timed_out: bool = Field(False, exclude=True)
    unsent: str | None = Field(None, description="Why the broker has not taken it yet.")

    @property
    def errors(self) -> tuple[str, ...]:
        return (stopped_waiting(self.id, self.state),) if self.timed_out else ()

    @property
    def exit_code(self) -> int:
        """1 if the command waited for it and it did not succeed."""
        return int(not self.succeeded)


def stopped_waiting(id: UUID, state: str) -> str:
    """Return the error of a wait in vain."""
    return f"stopped waiting: run {id} is {state}; to look again: minutebook run show {id}"


class Ran(RequestedRun):
    """An operation of an action that runs now."""

    error: str | None = Field(description="Why it failed, if it has ended.")


class RanOfAll(RequestedRun):
    """An operation of one of all actions that run now."""

    action: str = Field(description="Name of the action.")
    uid: UUID = Field(description="Of the action.")


class NotRun(View):
    """An action that could not be run."""

    action: str = Field(description="Name of the action.")
    uid: UUID = Field(description="Of the action.")
    refused: str = Field(description="Why.")


class Repeated(RequestedRun):
    """An operation that runs again."""

    attempt: int = Field(description="Number of the attempt that runs next.")
    revision: int = Field(description="The action's revision that it runs now.")
    old_revision: int = Field(description="The revision that it had before.")


class Cancelled(RequestedRun):
    """An operation that is cancelled, or was asked to end."""

    is_asked: bool = Field(description="Whether it runs, and was asked to end.")


class RanAll(Listing[RanOfAll | NotRun]):
    """The result of each active action."""

    @property
    def exit_code(self) -> int:
        """2 if all were refused, 1 if some were refused or did not succeed."""
        done = [one for one in self.root if isinstance(one, RanOfAll)]
        if len(done) == len(self.root) and all(one.succeeded for one in done):
            return 0
        return 1 if done else 2


class PlannedStep(View):
    """A step of an action."""

    name: str = Field(description="Name of the step.")
    parameters: dict[str, Any] = Field(description="Its parameters, with defaults.")


class Reached(View):
    """A user whom an action reaches."""

    id: str = Field(description="Id of the user.")
    address: str | None = Field(description="Where mail goes; null for a user without an address.")


class RunPlan(View):
    """What running an action now would do."""

    name: str = Field(description="Name of the action.")
    now: Instant = Field(description="The instant at which it would run.")
    active: bool = Field(description="Whether the action is not paused.")
    queue: str = Field(description="The queue that it would be sent to.")
    steps: tuple[PlannedStep, ...] = Field(description="Its steps, in order.")
    recipients: tuple[Reached, ...] = Field(description="Whom its steps would send to.")
    warnings: tuple[str, ...] = Field(description="What may go wrong.")
    is_about_users: bool = Field(description="Whether events of users make it due.")
    sends: bool = Field(description="Whether it has recipients.")
    outgoing: tuple[Outgoing, ...] = Field(
        description="The mails that its steps may send, without those of steps of your own."
    )


@Verb("run_action", "POST /api/actions/{action=name}:run", OPERATE, status=202)
def run(
    installation: Installation,
    name: str,
    user: str | None = None,
    key: str | None = None,
    notify: Notify = None,
) -> Ran:
    """Run an action now; its operation shows how it goes.

    `user` is the user to run an action on events for. `notify` decides about the mail that
    a step leaves to the caller; None leaves it to the action. Requests with the same `key` run it
    once.
    Raises Refused and records nothing if the action is paused, quarantined or already active.
    """
    engine = installation.engine
    with reading(engine) as connection:
        row = find(connection, installation, name)
    installation.publish()
    try:
        id, sent = manual.run_now(engine, row["uid"], installation.actor, user, key, notify)
    except NotFound as error:
        with reading(engine) as connection:
            raise named_elsewhere(connection, installation, "user", user or "") or error from error
    with reading(engine) as connection:
        stored = operations.get(connection, id, installation.scope)
    return Ran(
        id=id,
        state=stored["state"],
        error=stored["error"],
        unsent=installation.why_unsent(sent),
    )


@Verb("run_actions", "POST /api/actions:run", OPERATE, status=202)
def run_all(installation: Installation, wanted: ActionFilter, *, all_apps: bool = False) -> RanAll:
    """Run the active actions that a filter admits, or all, except those on events.

    Raises NotFound if the filter admits none.
    """
    installation.publish()
    scope, among = scope_of(installation, all_apps=all_apps), None
    if wanted != ActionFilter():
        among = {one.uid for one in chosen(installation, "run", wanted, all_apps=all_apps)}
    asked, sent = manual.run_all(installation.engine, installation.actor, scope.small_app_id, among)
    unsent = installation.why_unsent(sent)
    made: list[RanOfAll | NotRun] = [
        NotRun.of(one, action=one.name)
        if one.operation_id is None
        else RanOfAll(
            action=one.name,
            uid=one.uid,
            id=one.operation_id,
            state=OperationState.PENDING,
            unsent=unsent,
        )
        for one in asked
    ]
    return RanAll(tuple(made))


@Verb("retry_operation", "POST /api/operations/{id}:retry", OPERATE, status=202)
def retry(installation: Installation, id: str) -> Repeated:
    """Run a missed, failed, partial or cancelled operation under its action's current revision.

    Raises NotFound and Refused.
    """
    installation.publish()
    uid = _id_of(installation, id)
    done, sent = restart.retry(installation.engine, uid, installation.scope, installation.actor)
    return Repeated(
        id=uid,
        state=OperationState.PENDING,
        attempt=done.attempt,
        revision=done.revision,
        old_revision=done.old_revision,
        unsent=installation.why_unsent(sent),
    )


@Verb("cancel_operation", "POST /api/operations/{id}:cancel", OPERATE)
def cancel(installation: Installation, id: str) -> Cancelled:
    """Cancel an operation at once if it has not started; ask a running one to end.

    Raises NotFound and Refused.
    """
    installation.publish()
    uid = _id_of(installation, id)
    done = cancelling.cancel(installation.engine, uid, installation.scope, installation.actor)
    return Cancelled(id=uid, state=done.state, is_asked=done.state == OperationState.RUNNING)


@Verb("plan_run", "POST /api/actions/{action=name}:plan-run", OPERATE)
def plan(
    installation: Installation, name: str, user: str | None = None, notify: Notify = None
) -> RunPlan:
    """Return what running an action now would do.

    The plan has the mails that its steps may send.
    """
    with reading(installation.engine) as connection:
        row = find(connection, installation, name)
        app = app_of(connection, installation, row)
        model = load_action(document_in(row["document"]), steps=built_in_steps())
        rule = model.recipients
        if user or model.when.is_about_users:
            subject = users.find(connection, app.id, user) if user else None
            reached = [users.as_recipient(subject)] if subject else []
        else:
            reached = users.recipients_of(connection, app.id, rule) if rule else []
        others: dict[str, tuple[str, list[Recipient]]] = {}
        for mailed in added("mailed"):
            others |= mailed(connection, app.id, model, notify)
        return RunPlan(
            name=row["name"],
            now=read_clock(connection),
            active=row["active"],
            queue=readable(plan_in(row)).queue,
            steps=tuple(map(PlannedStep.of, model.operations.steps)),
            recipients=tuple(map(Reached.of, reached)),
            warnings=action_warnings(connection, app, [model], installation.settings)[0],
            is_about_users=model.when.is_about_users,
            sends=rule is not None,
            outgoing=tuple(outgoing_of(model, reached, others)),
        )


def _id_of(installation: Installation, text: str) -> UUID:
    with reading(installation.engine) as connection:
        return operation_of(connection, text, installation.scope)
