"""The dashboard's way into the application: its pages, and its answers to errors."""

from fastapi import APIRouter, FastAPI

from runtime.plug_ins import added
from web.dashboard import (
    account,
    action,
    actions,
    apps,
    editing,
    health,
    operations,
    overview,
    public,
    sign_in,
    static_files,
)
from web.dashboard.errors import answer_error
from web.dashboard.session import SignInNeeded
from web.problems import install

# Pages belong neither to the API nor to its description.
ROUTERS = (
    overview.router,
    actions.router,
    editing.router,
    action.router,
    operations.router,
    apps.router,
    health.router,
    public.router,
    account.router,
    sign_in.router,
    static_files.router,
)


def mount(app: FastAPI) -> tuple[APIRouter, ...]:
    """Let the application answer errors for people; return the routers of all pages."""
    install(app, answer_error)
    app.add_exception_handler(SignInNeeded, sign_in.ask_to_sign_in)
    return pages()


def pages() -> tuple[APIRouter, ...]:
    """Return the routers of all pages."""
    return (*ROUTERS, *added("pages"))
