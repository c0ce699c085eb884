"""The verbs: what every door offers, each declared once, at its function.

From the declaration, the signature and the docstring, `web/verbs.py` makes the endpoint with its
place in OpenAPI, and `cli/remote` the request to a server. The first paragraph of the docstring is
what OpenAPI says; what only callers in Python need to know follows it.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from models.filters import Filter
from models.json_text import LONGEST_DOCUMENT
from models.roles import Permission
from services.view import RequestBody

Function = TypeVar("Function", bound=Callable[..., Any])
READ, OPERATE, EDIT = Permission.READ, Permission.OPERATE, Permission.EDIT
ADMINISTER = Permission.ADMINISTER


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """A kind of document that bodies hold, and its name in OpenAPI."""

    name: str
    what: str
    # In bytes: of one, or of a list of them.
    longest: int = LONGEST_DOCUMENT


# Arguments that matter only on this machine.
UNSENT = frozenset({"known"})
ACTION = DocumentKind("ActionDocument", "A scheduled action: docs/reference/action/README.md.")
# Each user takes a fraction of a millisecond to check.
SMALL_APP = DocumentKind("SmallAppDocument", "A small app: docs/reference/small-app.md.", 2**20)
JOB_DOCUMENT = DocumentKind("JobDocument", "A job: `url`, `interval_s`, `meta`.")


@dataclass(frozen=True, slots=True)
class Verb:
    """A function as doors offer it.

    Its arguments are parts of the path, the body, or query parameters. Two are headers: the
    revision that a change `expects` is If-Match, and `key` is Idempotency-Key.
    """

    # What OpenAPI calls it.
    name: str
    # The method and the path: `{user=id}` is a part, and `?user=id` a parameter, that has another
    # name than the argument `id`.
    route: str
    permission: Permission
    # The arguments in the body, if they are neither documents nor a model: one is the body itself,
    # several are the keys of an object.
    body: tuple[str, ...] = ()
    # What `document` or `documents` are.
    kind: DocumentKind | None = None
    # The list that is the answer if the function returns a page; the header Link names the next.
    pages: type[Any] | None = None
    status: int = 200
    # Whether it concerns the installation, so that no token of a small app will do.
    is_of_installation: bool = False

    def __call__(self, function: Function) -> Function:
        """Note that a function is this verb."""
        VERBS[function] = self
        return function

    @property
    def method(self) -> str:
        """The method of its request."""
        return self.route.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path of its request, with the names of the parts that vary."""
        return re.sub(r"=\w+}", "}", self.route.partition(" ")[2].partition("?")[0])

    @property
    def is_of_app(self) -> bool:
        """Whether the path names a small app."""
        return self.path.startswith("/api/apps/{app}")

    @property
    def names(self) -> Mapping[str, str]:
        """The parts and parameters that have another name than their argument, by argument."""
        return {argument: name for name, argument in re.findall(r"(\w+)=(\w+)", self.route)}


# The verbs of the modules that are loaded, by function.
VERBS: dict[Callable[..., Any], Verb] = {}


def arguments_in_body(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the arguments of a verb that its request has in the body."""
    parameters = inspect.signature(function).parameters
    return VERBS[function].body or tuple(
        name
        for name, one in parameters.items()
        if name in {"document", "documents"} or is_model(one.annotation)
    )


def is_model(kind: Any) -> bool:
    """Return whether a type of an argument is that of a body."""
    return isinstance(kind, type) and issubclass(kind, RequestBody)


def is_filter(kind: Any) -> bool:
    """Return whether the fields of a type are query parameters."""
    return isinstance(kind, type) and issubclass(kind, Filter)
