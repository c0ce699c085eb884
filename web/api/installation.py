"""Endpoints of the whole installation: status, doctor, audit, tokens and channels."""

from services import audit, channels, overview, status, steps, tokens
from services.doctor import environment
from services.status import pauses
from web.routing import endpoints
from web.verbs import serve

router = endpoints("installation")
serve(router, status, pauses, overview, environment, steps, audit, tokens, channels)
