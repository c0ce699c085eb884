"""Routers of the endpoints."""

from fastapi import APIRouter
from fastapi.routing import APIRoute


def endpoints(tag: str, prefix: str = "") -> APIRouter:
    """Return a router whose routes the application takes over as they are.

    FastAPI matches each request twice against all routers that it includes, which takes longer
    than all else that it does for a read.
    """
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        generate_unique_id_function=_name,
        strict_content_type=False,
    )


def _name(route: APIRoute) -> str:
    return route.name
