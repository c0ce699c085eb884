"""An action as fields: its document is taken apart, and put together again."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.contrib.admin import widgets
from django.core.exceptions import ValidationError

RULES = (
    ("cron_rule", "Cron rule"),
    ("every", "Interval"),
    ("due_date", "Once, at"),
    ("", "As in the JSON below"),
)
ARGUMENT = "argument_"


class Json(forms.CharField):
    """JSON that comes back as it was written: Django's own cannot show all that it reads."""

    def to_python(self, value: Any) -> Any:
        """Return what a text says, None without one."""
        text = super().to_python(value)
        try:
            return json.loads(text) if text else None
        except (ValueError, RecursionError) as error:
            raise ValidationError(f"It is not JSON: {error}") from None

    def prepare_value(self, value: Any) -> str:
        """Return the text of a value, or of the form."""
        if value is None or isinstance(value, str):
            return value or ""
        return json.dumps(value, indent=2, ensure_ascii=False)


def _json(label: str, help_text: str, rows: int) -> Json:
    looks = widgets.AdminTextareaWidget({"rows": rows, "spellcheck": "false"})
    return Json(label=label, help_text=help_text, required=False, widget=looks)


def _text(label: str, help_text: str = "", *, required: bool = False, **looks: str) -> Any:
    widget = widgets.AdminTextInputWidget({"autocomplete": "off", **looks})
    return forms.CharField(label=label, help_text=help_text, required=required, widget=widget)


class ActionForm(forms.Form):
    """Fields for what most actions say, and JSON for the rest.

    `tasks` are those to choose from, with their parameters; None where no worker reports them.
    """

    name = _text("Name", required=True, maxlength="200")
    active = forms.BooleanField(label="Enabled", required=False)
    task = _text("Celery task", "Empty for steps in the JSON.", list="minutebook-tasks")
    kind = forms.ChoiceField(label="Due", choices=RULES, required=False)
    rule = _text("Rule", "Such as 0 7 * * mon-fri, PT15M or 2027-03-01T09:00.")
    timezone = forms.CharField(label="Time zone", required=False, help_text="Such as Europe/Paris.")
    notify = _text("Notify of failures", "Mail addresses, URLs and channels, separated by commas.")
    rest = _json("Everything else", "Policy, description and all other keys, as JSON.", rows=8)

    def __init__(
        self, data: Any, document: dict[str, Any], tasks: Mapping[str, Sequence[str] | None]
    ) -> None:
        super().__init__(data, initial=fields_of(document))
        self.tasks = sorted(tasks)
        task = data.get("task", "").strip() if data else self.initial.get("task")
        named = _fields_for(tasks.get(task) if task else (), self.initial)
        self.is_raw = named is None or bool(data and "args" in data)
        if self.is_raw:
            self.fields["args"] = _json("Arguments", "A JSON list.", rows=2)
            self.fields["kwargs"] = _json("Named arguments", "A JSON object.", rows=2)
        else:
            self._add_arguments(named or [])

    def _add_arguments(self, parameters: Sequence[str]) -> None:
        args, kwargs = (self.initial.get(key) or () for key in ("args", "kwargs"))
        given = {**dict(zip(map(_name, parameters), args)), **dict(kwargs)}
        for text in parameters:
            name, equals, default = text.partition("=")
            its_default = f"Without a value it is {default}." if equals else ""
            self.fields[ARGUMENT + name] = _text(name, its_default, required=not equals)
            if name in given:
                self.initial[ARGUMENT + name] = _as_text(given[name])

    @property
    def arguments(self) -> list[str]:
        """The names of the fields that are arguments of the task."""
        return [name for name in self.fields if name.startswith((ARGUMENT, "args", "kwargs"))]

    def document(self) -> dict[str, Any]:
        """Return the document that the fields say."""
        given = self.cleaned_data
        made = copy.deepcopy(given["rest"] or {})
        made |= {"name": given["name"], "active": given["active"]}
        if given["task"]:
            options = _part(made, "operations", "celery_task")
            step = {"task": given["task"], **self._call(), **options}
            made["operations"] = {**_part(made, "operations"), "celery_task": step}
        if given["kind"]:
            zone = {"timezone": given["timezone"]} if given["timezone"] else {}
            made["when"] = {given["kind"]: given["rule"], **zone, **_part(made, "when")}
        receivers = [_receiver(one.strip()) for one in given["notify"].split(",") if one.strip()]
        if receivers:
            hooks = _part(made, "hooks")
            others = hooks.get("on_failure", [])
            others = others if isinstance(others, list) else [others]
            made["hooks"] = {**hooks, "on_failure": [*receivers, *others]}
        return made

    def clean_rest(self) -> Any:
        """Return the JSON, which has to be an object."""
        rest = self.cleaned_data["rest"]
        if rest is not None and not isinstance(rest, dict):
            raise ValidationError("It is not a JSON object.")
        return rest

    def clean(self) -> Any:
        """Refuse what one of the fields says without another."""
        given = self.cleaned_data
        if given.get("kind") and not given.get("rule"):
            self.add_error("rule", "Write when it is due.")
        if given.get("kind") and not isinstance((given.get("rest") or {}).get("when", {}), dict):
            self.add_error("kind", "The JSON has several rules; choose the last entry.")
        lost = [key for key in self.data if key.startswith(ARGUMENT) and self.data[key]]
        if any(key not in self.fields for key in lost):
            self.add_error("task", "This task takes other arguments; fill in the fields below.")
        return given

    def _call(self) -> dict[str, Any]:
        given = self.cleaned_data
        if self.is_raw:
            return {name: given[name] for name in ("args", "kwargs") if given[name]}
        values = {
            name[len(ARGUMENT) :]: _value_in(given[name]) for name in self.arguments if given[name]
        }
        return {"kwargs": values} if values else {}


def fields_of(document: dict[str, Any]) -> dict[str, Any]:
    """Return the values of an action's fields; `rest` has what they do not show."""
    rest = copy.deepcopy(document)
    found = {"name": rest.pop("name", ""), "active": rest.pop("active", True), "kind": ""}
    step = _part(rest, "operations", "celery_task")
    if step:
        found |= {key: step.pop(key, None) for key in ("task", "args", "kwargs")}
        _keep(rest, "operations", {"celery_task": step} if step else {})
    when = _part(rest, "when")
    kinds = [kind for kind, _ in RULES if kind in when]
    if len(kinds) == 1:
        found |= {"kind": kinds[0], "rule": when.pop(kinds[0])}
        found["timezone"] = when.pop("timezone", "")
        _keep(rest, "when", when)
    hooks = _part(rest, "hooks")
    told = hooks.pop("on_failure", [])
    texts = [(one, next(iter(one.values()))) for one in told if len(one) == 1]
    plain = {text: one for one, text in texts if "," not in text and one == _receiver(text)}
    found["notify"] = ", ".join(plain)
    others = [one for one in told if one not in plain.values()]
    _keep(rest, "hooks", {**hooks, "on_failure": others} if others else hooks)
    return {**found, "rest": rest or None}


def _part(document: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Return a copy of an object in a document, empty if there is none."""
    found: Any = document
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return dict(found) if isinstance(found, dict) else {}


def _keep(document: dict[str, Any], key: str, left: dict[str, Any]) -> None:
    """Leave in a document what of an object no field shows."""
    document.pop(key, None)
    if left:
        document[key] = left


def _receiver(text: str) -> dict[str, str]:
    if text.startswith(("https://", "http://", "env:", "file:")):
        return {"webhook": text}
    return {"mail": text} if "@" in text else {"notify": text}


def _fields_for(parameters: Sequence[str] | None, call: dict[str, Any]) -> list[str] | None:
    """Return the parameters that have a field each; None if a call cannot be shown so."""
    if parameters is None or any(one == "/" or one.strip("*") != one != "*" for one in parameters):
        return None
    by_place = parameters[: parameters.index("*")] if "*" in parameters else parameters
    args, kwargs = call.get("args") or (), call.get("kwargs") or {}
    named = [one for one in parameters if one != "*"]
    is_shown = len(args) <= len(by_place) and set(kwargs) <= {_name(one) for one in named}
    return named if is_shown else None


def _name(parameter: str) -> str:
    return parameter.partition("=")[0]


def _value_in(text: str) -> Any:
    """Return the JSON that a field says, or its text if it says none."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _as_text(value: Any) -> str:
    """Return what a field shows for a value, so that it is read as the same."""
    is_plain = isinstance(value, str) and value and value == " ".join(value.split())
    if is_plain and _value_in(value) == value:
        return str(value)
    return json.dumps(value, ensure_ascii=False)
