"""Endpoints of workers of a Celery application that follow."""

from functools import partial

from starlette.routing import Route

from models.roles import Permission
from models.store.bearers import Bearer
from services import followers
from services.followers import Follower
from services.installation import Installation
from web.plain import Door, post
from web.routing import endpoints

# In bytes: the traceback of a task that failed.
LONGEST = 256 * 1024

router = endpoints("followers")
routes: list[Route] = []


def _follower(opened: Installation, bearer: Bearer) -> Follower:
    # Other roles than workers may follow everything.
    return Follower(opened, ("*",) if bearer.tasks is None else bearer.tasks)


_door = partial(Door, Permission.FOLLOW, LONGEST, _follower)
post(router, routes, "/api/operations/{id}:take", followers.take, _door(begins=True))
post(router, routes, "/api/operations/{id}:beat", followers.beat, _door())
post(router, routes, "/api/operations/{id}:end", followers.end, _door())
post(router, routes, "/api/operations/{id}:discard", followers.discard, _door())
post(router, routes, "/api/operations:beat", followers.beat_many, _door())
post(router, routes, "/api/followers", followers.note_worker, _door())
