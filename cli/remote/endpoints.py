"""The endpoint of each function of `views/` that commands call.

An argument is a part of the path, the body, or the query parameter of its name; the revision that a
change `expects` is the header If-Match. If `{app}` in a path is not an argument, it is the
command's small app. The functions are named, not imported: a command loads only those that it
calls.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Body(Enum):
    """How arguments become a body."""

    NONE = "none"
    # One argument, as JSON.
    VALUE = "value"
    # The arguments, as an object.
    FIELDS = "fields"
    # A list, one item a line.
    LINES = "lines"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A method and a path, and where the arguments of the function belong."""

    method: str
    path: str
    body: Body = Body.NONE
    # The arguments in the body.
    fields: tuple[str, ...] = ()
    # Parameters that have another name than their argument.
    names: Mapping[str, str] = field(default_factory=dict)
    # Arguments that matter only on this machine.
    unsent: frozenset[str] = frozenset()
    # The answer is a list, and the header Link names the next page.
    is_linked: bool = False


def _get(path: str, **names: str) -> Endpoint:
    return Endpoint("GET", path, names=names)


def _get_linked(path: str) -> Endpoint:
    return Endpoint("GET", path, is_linked=True)


def _post(path: str, **names: str) -> Endpoint:
    return Endpoint("POST", path, names=names)


def _delete(path: str, **names: str) -> Endpoint:
    return Endpoint("DELETE", path, names=names)


def _send(path: str, body: Body, *fields: str, **names: str) -> Endpoint:
    return Endpoint("POST", path, body, fields, names)


def _store(path: str) -> Endpoint:
    return Endpoint("POST", path, Body.LINES, ("documents",), unsent=frozenset({"watch"}))


_RANGE = {"first": "from", "last": "to"}

ENDPOINTS: Mapping[str, Endpoint] = {
    "actions.search.list_actions": _get_linked("/api/actions"),
    "actions.search.list_documents": _get_linked("/api/actions:documents"),
    "actions.show": _get("/api/actions/{name}"),
    "actions.next_of": _get("/api/actions/{name}/next"),
    "explanation.explain": _get("/api/actions/{action}/explain", subject="user"),
    "changes.check": _store("/api/actions:validate"),
    "changes.add": _store("/api/actions:add"),
    "changes.apply": _store("/api/actions:apply"),
    "changes.put": Endpoint("PUT", "/api/actions/{name}", Body.VALUE, ("document",)),
    "changes.rename": _post("/api/actions/{name}:rename"),
    "changes.plan.plan_put": _send("/api/actions/{name}:preview", Body.VALUE, "document"),
    "changes.plan.plan_changes": _store("/api/actions:preview"),
    "changes.delete": _delete("/api/actions/{name}"),
    "changes.delete_owned": _delete("/api/actions"),
    "changes.pause": _post("/api/actions/{name}:pause"),
    "changes.resume": _post("/api/actions/{name}:resume"),
    "changes.pause_all": _post("/api/actions:pause"),
    "changes.resume_all": _post("/api/actions:resume"),
    "runs.run": _post("/api/actions/{name}:run"),
    "runs.run_all": _post("/api/actions:run"),
    "runs.plan": _post("/api/actions/{name}:plan-run"),
    "runs.rerun": _post("/api/operations/{id}:rerun"),
    "runs.retry": _post("/api/operations/{id}:retry"),
    "runs.cancel": _post("/api/operations/{id}:cancel"),
    "backfills.plan": _post("/api/actions/{action}:plan-backfill", **_RANGE),
    "backfills.start": _post("/api/actions/{action}:backfill", **_RANGE),
    "backfills.cancel": _post("/api/actions/{action}:cancel-backfill"),
    "backfills.show": _get("/api/backfills/{id}"),
    "operations.list_operations": _get("/api/operations:newest", states="state"),
    "operations.show": _get("/api/operations/{id}"),
    "operations.state": _get("/api/operations/{id}/state"),
    "operations.log": _get("/api/operations/{id}/logs"),
    "apps.list_apps": _get_linked("/api/apps"),
    "apps.show": _get("/api/apps/{name}"),
    "apps.changes.create": _send("/api/apps", Body.VALUE, "document"),
    "apps.changes.apply": _store("/api/apps:apply"),
    "apps.changes.delete": _delete("/api/apps/{name}", is_sure="force"),
    "apps.grants.granted": _get("/api/apps/{name}/grants"),
    "apps.grants.grant": Endpoint(
        "PATCH", "/api/apps/{name}/grants", Body.VALUE, ("changes",), {"all_": "everything"}
    ),
    "apps.limits.limits": _get("/api/apps/{name}/limits"),
    "apps.limits.limit": Endpoint("PATCH", "/api/apps/{name}/limits", Body.VALUE, ("changes",)),
    "apps.data.open_rows": _get("/api/apps/{app}/data/{domain}", is_staged="staging"),
    "templates.list_templates": _get_linked("/api/apps/{app}/templates"),
    "templates.preview": _get("/api/apps/{app}/templates/{name}/preview"),
    "templates.summary.preview": _get("/api/apps/{app}/summary"),
    "templates.send_test": _post("/api/apps/{app}/templates/{name}:send-test"),
    "users.list_users": _get_linked("/api/apps/{app}/users"),
    "users.add": _send("/api/apps/{app}/users", Body.VALUE, "new"),
    "users.show": _get("/api/apps/{app}/users/{id}"),
    "users.update": Endpoint("PATCH", "/api/apps/{app}/users/{id}", Body.VALUE, ("changed",)),
    "users.delete": _delete("/api/apps/{app}/users/{id}"),
    "users.import_rows": _send(
        "/api/apps/{app}/users:import", Body.VALUE, "rows", raises_events="events"
    ),
    "users.events.send": _send("/api/apps/{app}/events", Body.FIELDS, "event", "user", "id", "at"),
    "jobs.list_jobs": _get_linked("/api/apps/{app}/jobs"),
    "jobs.add": _send("/api/apps/{app}/jobs", Body.VALUE, "new"),
    "jobs.import_jobs": _store("/api/apps/{app}/jobs:import"),
    "jobs.delete": _delete("/api/apps/{app}/jobs/{id}"),
    "steps.list_steps": _get("/api/steps"),
    "status.status": _get("/api/status"),
    "status.quiet.pause": _post("/api/installation:pause"),
    "status.quiet.resume": _post("/api/installation:resume"),
    "doctor.environment.examine": _get("/api/doctor"),
    "tokens.create": _send("/api/tokens", Body.FIELDS, "role", "expires"),
    "tokens.list_tokens": _get_linked("/api/tokens"),
    "tokens.revoke": _delete("/api/tokens/{id}"),
}
