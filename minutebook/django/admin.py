"""The pages of actions in Django's admin, which ask the HTTP API.

Django decides who may do what, by the permissions of the model `Action`. The server knows all staff
by one token.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path
from django.views.decorators.http import require_POST

from minutebook import actions
from minutebook.client import Client, Page
from minutebook.django.models import Action
from minutebook.django.server import Unavailable, translated_errors

NEW = {
    "name": "",
    "operations": {"celery_task": {"task": ""}},
    "when": {"cron_rule": "0 7 * * *"},
}
# What a button does: the permission that it needs, and what is said afterwards.
VERBS = {
    "run": ("run", "Operation {id} is {state}."),
    "pause": ("change", "The action is paused."),
    "resume": ("change", "The action is active."),
}
NAME = "admin:minutebook_action_"


def ask(method: str, address: str, body: Any = None, **params: str) -> Any:
    """Return the JSON of an answer; raises Unavailable, and Http404 for an unknown action."""
    return _answer(lambda server: server.call(method, address, body, **params), method == "GET")


def ask_page(address: str, **params: str) -> Page:
    """Return a page of a list; raises as `ask` does."""
    found: Page = _answer(lambda server: server.page(address, **params), is_read=True)
    return found


def _answer(act: Callable[[Client], Any], is_read: bool) -> Any:
    try:
        with translated_errors(), actions.client() as server:
            return act(server)
    except Unavailable as error:
        if error.status == 404 and is_read:
            raise Http404(str(error)) from None
        raise


@admin.register(Action)
class ActionAdmin(admin.ModelAdmin):
    """Lists, edits, pauses, runs and explains actions."""

    def get_urls(self) -> list[Any]:
        """Return the pages in place of those of a model with a table."""
        pages = {
            "": ("changelist", self.list_page),
            "add/": ("add", self.add_page),
            "<uuid:uid>/change/": ("change", self.edit_page),
            "<uuid:uid>/delete/": ("delete", self.delete_page),
            "<uuid:uid>/<str:verb>/": ("verb", require_POST(self.do)),
        }
        return [
            path(route, self.admin_site.admin_view(page), name=f"minutebook_action_{name}")
            for route, (name, page) in pages.items()
        ]

    def list_page(self, request: Any) -> Any:
        """List a page of the actions with their status."""
        self._require(request, "view")
        place = {"cursor": request.GET["cursor"]} if "cursor" in request.GET else {}
        found = self._told(request, lambda: ask_page("/api/actions", **place))
        return self._page(request, "list", found=found)

    def add_page(self, request: Any) -> Any:
        """Create an action from a document."""
        self._require(request, "add")
        text = request.POST.get("document") or json.dumps(NEW, indent=2)
        if request.method == "POST":
            if "check" in request.POST:
                tried = self._stored(
                    request, "POST", "/api/actions:add", dry_run="true", details="true"
                )
                return self._page(request, "edit", text=text, plan=tried and tried[0])
            made = self._stored(request, "POST", "/api/actions")
            if made:
                self.log_addition(request, _named(made), "created")
                messages.success(request, f"Stored {made['name']}.")
                return redirect(f"{NAME}change", made["uid"])
        return self._page(request, "edit", text=text)

    def edit_page(self, request: Any, uid: UUID) -> Any:
        """Show an action, change its document, and explain an instant."""
        self._require(request, "view")
        address, text = f"/api/actions/{uid}", request.POST.get("document")
        plan = None
        if request.method == "POST":
            self._require(request, "change")
            read = f'"{request.POST.get("revision", "")}"'
            if "check" in request.POST:
                plan = self._stored(request, "PUT", address, if_match=read, dry_run="true")
            else:
                made = self._stored(request, "PUT", address, if_match=read)
                if made:
                    self.log_change(request, _named(made), f"revision {made['revision']}")
                    messages.success(
                        request, f"Stored {made['name']}, revision {made['revision']}."
                    )
                    return redirect(f"{NAME}change", uid)
        shown = self._asked(request, "GET", address)
        at = request.GET.get("at", "").strip()
        explained = self._asked(request, "GET", f"{address}/explain", at=at) if at else None
        if shown and text is None:
            text = json.dumps(shown["document"], indent=2, ensure_ascii=False)
        # A second try also changes the revision that was read first, or none.
        revision = request.POST.get("revision") or (shown or {}).get("revision")
        values = {"shown": shown, "explained": explained, "at": at, "plan": plan}
        return self._page(request, "edit", text=text, revision=revision, **values)

    def delete_page(self, request: Any, uid: UUID) -> Any:
        """Delete an action, once that is confirmed."""
        self._require(request, "delete")
        shown = self._asked(request, "GET", f"/api/actions/{uid}")
        if request.method == "POST" and shown:
            if self._asked(request, "DELETE", f"/api/actions/{uid}"):
                self.log_change(request, _named(shown), "deleted")
                messages.success(request, f"Deleted {shown['name']}; its history stays.")
            return redirect(f"{NAME}changelist")
        return self._page(request, "delete", shown=shown)

    def do(self, request: Any, uid: UUID, verb: str) -> Any:
        """Run, pause or resume an action."""
        if verb not in VERBS:
            raise Http404(verb)
        permission, told = VERBS[verb]
        self._require(request, permission)
        params = {"notify": str("notify" in request.POST).lower()} if verb == "run" else {}
        done = self._asked(request, "POST", f"/api/actions/{uid}:{verb}", **params)
        if done:
            self.log_change(request, Action(uid=uid, name=request.POST.get("name", uid)), verb)
            messages.success(request, told.format(**done))
        return redirect(f"{NAME}change", uid)

    def _require(self, request: Any, permission: str) -> None:
        if not _may(request, permission):
            raise PermissionDenied

    def _asked(self, request: Any, method: str, address: str, **params: str) -> Any:
        """Return an answer; None after a message about what went wrong."""
        return self._told(request, lambda: ask(method, address, **params))

    def _told(self, request: Any, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except Unavailable as error:
            messages.error(request, f"Not done: {error}")
            return None

    def _stored(self, request: Any, method: str, address: str, **params: str) -> Any:
        """Return what storing the document of the form did; None after a message."""
        try:
            return ask(method, address, _document(request), **params)
        except Unavailable as error:
            for line in str(error).splitlines():
                # Django begins a message with a capital letter.
                messages.error(request, f"Not stored: {line}")
            return None

    def _page(self, request: Any, name: str, **values: Any) -> Any:
        may = {verb: _may(request, verb) for verb in ("add", "change", "delete", "run")}
        context = {
            **self.admin_site.each_context(request),
            "title": "Scheduled actions",
            "may": may,
        }
        return TemplateResponse(request, f"minutebook/{name}.html", {**context, **values})


def _may(request: Any, permission: str) -> bool:
    return bool(request.user.has_perm(f"minutebook.{permission}_action"))


def _document(request: Any) -> Any:
    try:
        return json.loads(request.POST.get("document", ""))
    except (ValueError, RecursionError) as error:
        raise Unavailable(f"The document is not JSON: {error}") from None


def _named(made: dict[str, Any]) -> Action:
    return Action(uid=made["uid"], name=made["name"])
