"""Endpoints of operations, the runs of actions."""

from views import operations, runs
from views.runs import many
from web.routing import endpoints
from web.verbs import serve

router = endpoints("operations")
serve(router, operations, many, runs.cancel, runs.retry)
