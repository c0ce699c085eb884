"""Endpoints of operations, the runs of actions."""

from services import operations, runs
from services.runs import many
from web.routing import endpoints
from web.verbs import serve

router = endpoints("operations")
serve(router, operations, many, runs.cancel, runs.retry)
