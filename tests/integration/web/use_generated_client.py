"""What a program does with a client that a generator made of the server's OpenAPI document.

A process of its own: `use_generated_client.py URL TOKEN`, with the generated package on its path.
"""

import sys
from http import HTTPStatus

from minutebook_client import AuthenticatedClient
from minutebook_client.api.actions import create_action, run_action
from minutebook_client.api.jobs import complete_job, next_job
from minutebook_client.api.operations import get_operation_state
from minutebook_client.models import (
    ActionDocument,
    Change,
    CompletedJob,
    CompletedJobResult,
    JobToDo,
    OperationStateView,
    ProblemDetails,
    Ran,
)

APP = "shop"
URL = "https://example.com/feed"
WHEN = {"cron_rule": "0 3 * * *"}
CRAWL = {"name": "crawl", "when": WHEN, "operations": {"job": {"url": URL}}}


def make_action(client: AuthenticatedClient) -> Change:
    """Create an action; a wrong one is refused with its faults."""
    made = create_action.sync(client=client, app=APP, body=ActionDocument.from_dict(CRAWL))
    assert isinstance(made, Change), made
    wrong = ActionDocument.from_dict({**CRAWL, "when": {"cron_rule": "0 25 * * *"}})
    refused = create_action.sync_detailed(client=client, app=APP, body=wrong)
    assert refused.status_code is HTTPStatus.UNPROCESSABLE_ENTITY
    assert isinstance(refused.parsed, ProblemDetails)
    assert refused.parsed.problems[0].path.startswith("when")
    return made


def run(client: AuthenticatedClient, action: Change) -> None:
    """Run an action, and do its work as a worker does."""
    ran = run_action.sync(str(action.uid), client=client, idempotency_key="once")
    assert isinstance(ran, Ran), ran
    assert state_of(client, ran) == "queued"
    # An answer without a job means that none came in time: a worker asks again.
    answers = (next_job.sync(client=client, app=APP) for _ in range(100))
    job = next(one for one in answers if one is not None)
    assert isinstance(job, JobToDo), job
    assert (job.operation_id, job.url) == (ran.id, URL)
    assert state_of(client, ran) == "running"
    done = CompletedJob(job.lease, result=CompletedJobResult.from_dict({"pages": 3}))
    assert complete_job.sync_detailed(job.id, client=client, body=done).status_code == 204
    assert state_of(client, ran) == "success"


def state_of(client: AuthenticatedClient, ran: Ran) -> str:
    view = get_operation_state.sync(str(ran.id), client=client)
    assert isinstance(view, OperationStateView), view
    return str(view.state)


if __name__ == "__main__":
    with AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2]) as _client:
        run(_client, make_action(_client))
