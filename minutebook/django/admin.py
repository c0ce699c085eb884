"""The pages of actions in Django's admin, which ask the HTTP API, and of schedules of objects.

Django decides who may do what, by the permissions of the models. The server knows all staff by one
token.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.helpers import AdminForm
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path
from django.views.decorators.http import require_POST

from minutebook import actions
from minutebook.client import Client
from minutebook.django.forms import ActionForm
from minutebook.django.models import Action, Schedule
from minutebook.django.sending import NOT_FOUND, Unavailable, translated_errors

# What a button does: the permission that it needs, and what is said afterwards.
VERBS = {
    "run": ("run", "Run {id} is {state}."),
    "pause": ("change", "The action is paused."),
    "resume": ("change", "The action is active."),
}
NAME = "admin:minutebook_action_"


@admin.register(Action)
class ActionAdmin(admin.ModelAdmin):
    """Lists, edits, pauses, runs and deletes actions."""

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
        found = _asked(request, lambda server: server.page("/api/actions", **place))
        return self._page(request, "list", found=found)

    def add_page(self, request: Any) -> Any:
        """Create an action from the fields of a form."""
        self._require(request, "add")
        new = {"when": {"cron_rule": "", "timezone": settings.TIME_ZONE}}
        form, plan = _form(request, new, "add"), None
        if request.method == "POST" and form.is_valid():
            if "check" in request.POST:
                asked = {"dry_run": "true", "details": "true"}
                plan = _stored(request, form, "POST", "/api/actions:add", **asked)
            elif made := _stored(request, form, "POST", "/api/actions"):
                self.log_addition(request, _named(made), "created")
                messages.success(request, f"Stored {made['name']}.")
                return redirect(f"{NAME}change", made["uid"])
        return self._form_page(request, form, shown=False, plan=plan and plan[0])

    def edit_page(self, request: Any, uid: UUID) -> Any:
        """Show an action, and change it by the fields of a form."""
        self._require(request, "view" if request.method == "GET" else "change")
        address, plan = f"/api/actions/{uid}", None
        shown = _called(request, "GET", address)
        document = shown["document"] if shown else {}
        # A broken one is a text.
        document = {**document, "active": shown["active"]} if isinstance(document, dict) else {}
        form = _form(request, document, "change")
        if request.method == "POST" and form.is_valid():
            asked = {"if_match": f'"{request.POST.get("revision", "")}"'}
            if "check" in request.POST:
                plan = _stored(request, form, "PUT", address, dry_run="true", **asked)
            elif made := _stored(request, form, "PUT", address, **asked):
                self.log_change(request, _named(made), f"revision {made['revision']}")
                messages.success(request, f"Stored {made['name']}, revision {made['revision']}.")
                return redirect(f"{NAME}change", uid)
        # A second try also changes the revision that was read first, or none.
        revision = request.POST.get("revision") or (shown or {}).get("revision")
        values = {"shown": shown, "plan": plan, "revision": revision}
        is_owned = Schedule.objects.filter(pk=document.get("name")).exists()
        return self._form_page(request, form, is_owned=is_owned, **values)

    def delete_page(self, request: Any, uid: UUID) -> Any:
        """Delete an action, once that is confirmed."""
        self._require(request, "delete")
        shown = _called(request, "GET", f"/api/actions/{uid}")
        if request.method == "POST" and shown:
            if _called(request, "DELETE", f"/api/actions/{uid}"):
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
        if done := _called(request, "POST", f"/api/actions/{uid}:{verb}", **params):
            self.log_change(request, Action(uid=uid, name=request.POST.get("name", uid)), verb)
            messages.success(request, told.format(**done))
        return redirect(f"{NAME}change", uid)

    def _form_page(self, request: Any, form: ActionForm, **values: Any) -> Any:
        """Return the page of a form, in the looks of Django's own."""
        groups = {
            None: ["name", "active"],
            "Task": ["task", *form.arguments],
            "When": [("kind", "rule"), "timezone"],
            "Notices": ["notify"],
            "JSON": ["rest"],
        }
        fieldsets = [(name, {"fields": fields}) for name, fields in groups.items()]
        shown = AdminForm(form, fieldsets, {}, (), self)
        return self._page(request, "edit", form=form, adminform=shown, **values)

    def _require(self, request: Any, permission: str) -> None:
        if not _may(request, permission):
            raise PermissionDenied

    def _page(self, request: Any, name: str, **values: Any) -> Any:
        may = {verb: _may(request, verb) for verb in ("add", "change", "delete", "run")}
        context = {
            **self.admin_site.each_context(request),
            "title": "Scheduled actions",
            "server": actions.url(),
            "may": may,
        }
        return TemplateResponse(request, f"minutebook/{name}.html", {**context, **values})


@admin.register(Schedule)
class ScheduleAdmin(admin.ModelAdmin):
    """Shows how the schedules of objects stand at the server."""

    list_display = ("name", "state", "detail", "changed_at")
    list_filter = ("state",)
    search_fields = ("name",)

    def has_change_permission(self, *_: Any) -> bool:
        """Return False: the code that made them changes them."""
        return False

    has_add_permission = has_delete_permission = has_change_permission


def _form(request: Any, document: dict[str, Any], permission: str) -> ActionForm:
    """Return the form of a request, to be read alone without a permission."""
    data = request.POST if request.method == "POST" else None
    may_store = _may(request, permission)
    found = _called(request, "GET", "/api/tasks") if may_store else None
    form = ActionForm(data, document, {one["name"]: one["parameters"] for one in found or ()})
    for field in form.fields.values():
        field.disabled = not may_store
    return form


def _asked(request: Any, act: Callable[[Client], Any], failed: str = "Not done") -> Any:
    """Return what the server answers; None after a message about what went wrong."""
    try:
        with translated_errors(), actions.client() as server:
            return act(server)
    except Unavailable as error:
        if error.status == NOT_FOUND:
            raise Http404(str(error)) from None
        for line in str(error).splitlines():
            # Django begins a message with a capital letter.
            messages.error(request, f"{failed}: {line}")
        return None


def _called(request: Any, method: str, address: str, **params: str) -> Any:
    return _asked(request, lambda server: server.call(method, address, **params))


def _stored(request: Any, form: ActionForm, method: str, address: str, **params: str) -> Any:
    new = form.document()
    return _asked(request, lambda server: server.call(method, address, new, **params), "Not stored")


def _may(request: Any, permission: str) -> bool:
    return bool(request.user.has_perm(f"minutebook.{permission}_action"))


def _named(made: dict[str, Any]) -> Action:
    return Action(uid=made["uid"], name=made["name"])
