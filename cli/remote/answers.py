"""The meaning of answers: values, and the errors that the command would have raised here."""

import json
import re
from collections.abc import Sequence
from typing import Any

import httpx

from models.errors import (
    BrokerUnavailable,
    InvalidDocument,
    NotFound,
    Outdated,
    Problem,
    Refused,
    SchedulerError,
)
from models.hints import ROOT

PREFIX = "urn:minutebook:problem:"
# The kinds of `web/problems.py` that are an error here too.
ERRORS: dict[str, type[SchedulerError]] = {
    "not-found": NotFound,
    "outdated": Outdated,
    "refused": Refused,
    "broker-unavailable": BrokerUnavailable,
}
HINTS = {"unauthorized": "; check SCHED_TOKEN, --token-file or --token"}
# A path that no endpoint has, and a method that its path does not take.
NO_ENDPOINT = {("not-found", "Not Found"), ("method-not-allowed", "Method Not Allowed")}


def error_of(response: httpx.Response, places: Sequence[str] = ()) -> SchedulerError:
    """Return the error that an answer without success stands for."""
    if response.is_redirect:
        where = response.headers.get("location", "nowhere")
        return Refused(f"{_address(response)} redirects to {where}; write its address as --url")
    details = _details(response)
    if details is None:
        return not_ours(response)
    kind, detail = details
    if kind == "invalid-document":
        return InvalidDocument([_in_place(line, places) for line in detail.splitlines()])
    if (kind, detail) in NO_ENDPOINT:
        asked = f"{response.request.method} {response.request.url.path}"
        return Refused(f"the server has no {asked}; it may be older than this command line")
    by_status = Refused if response.is_client_error else SchedulerError
    return ERRORS.get(kind, by_status)(detail + HINTS.get(kind, ""))


def page_text(response: httpx.Response) -> bytes:
    """Return the JSON of a page: the answer has its items, a header names the next page."""
    link = response.links.get("next")
    following = None if link is None else httpx.URL(link["url"]).params.get("cursor")
    return b'{"items": %b, "next": %b}' % (response.content, json.dumps(following).encode())


def not_ours(response: httpx.Response) -> SchedulerError:
    """Return the error for an answer that did not come from Minutebook."""
    kind = response.headers.get("content-type", "no type").partition(";")[0]
    return SchedulerError(
        f"{_address(response)} answered {response.status_code} with {kind}, which is not an answer "
        "of Minutebook; check --url"
    )


def _details(response: httpx.Response) -> tuple[str, str] | None:
    """Return the kind and the text of problem details, None for another answer."""
    try:
        value: Any = response.json()
    except ValueError:
        return None
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str) or not kind.startswith(PREFIX):
        return None
    detail = value.get("on_command_line") or value.get("detail") or value.get("title") or kind
    return kind.removeprefix(PREFIX), str(detail)


def _in_place(line: str, places: Sequence[str]) -> Problem:
    """Return a line of an invalid document as a problem, with the place of its document."""
    path, _, remedy = line.partition(": ")
    numbered = re.fullmatch(r"\[(\d+)\]", path)
    if numbered and int(numbered[1]) < len(places):
        return Problem(f"{places[int(numbered[1])]}", None, remedy)
    if len(places) == 1:
        return Problem(f"{places[0]}: {path}", None, remedy)
    return Problem(path or ROOT, None, remedy)


def _address(response: httpx.Response) -> str:
    url = response.request.url
    return str(url.copy_with(query=None, fragment=None))
