"""The bodies and the headers of requests."""

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Request
from pydantic import BaseModel, ValidationError

from models.errors import InvalidDocument, Problem
from models.json_text import LONGEST_DOCUMENT, read_json
from models.problems import problems_of
from services.files import Document
from services.verbs import DocumentKind
from web.problems import PreconditionRequired

Model = TypeVar("Model", bound=BaseModel)
JSON_LINES = "application/jsonl"
LONGEST_TAG = 64
NO_TAG = "write the ETag of an answer, or *"


async def _bytes(request: Request) -> bytes:
    return await request.body()


# The body as it came: documents are read by their own reader, which bounds and locates.
Body = Annotated[bytes, Depends(_bytes)]
ContentType = Annotated[str | None, Header(include_in_schema=False)]
IfMatch = Annotated[
    str | None, Header(description="The ETag of the revision that the change is made to.")
]
IfNoneMatch = Annotated[
    str | None, Header(description="`*` to create only: what exists is not changed.")
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=200,
        description="Requests with the same key run the action once.",
    ),
]


def reads(kind: DocumentKind, *, many: bool = False, lines: bool = False) -> dict[str, Any]:
    """Return what OpenAPI says of a document, which its own reader reads and checks.

    `many` permits a list of them, and `lines` JSON Lines.
    """
    schema = {"title": kind.name, "description": kind.what, "type": "object"}
    one = _named(kind.name, schema)
    either = {"anyOf": [one, {"type": "array", "items": {"$ref": one["$ref"]}}]}
    content: dict[str, Any] = {"application/json": {"schema": either if many else one}}
    if lines:
        content[JSON_LINES] = {"schema": {"type": "string", "description": "One in each line."}}
    return {"requestBody": {"required": True, "content": content}}


def document(body: bytes, longest: int = LONGEST_DOCUMENT) -> object:
    """Return the value of a JSON body; raises InvalidDocument with the place of the fault."""
    return read_json(body, longest=longest)


def documents(
    body: bytes, content_type: str | None, longest: int = LONGEST_DOCUMENT
) -> list[object]:
    """Return the documents of a body: one, a list, or JSON Lines of `longest` bytes at most."""
    if (content_type or "").partition(";")[0].strip().lower() in {
        JSON_LINES, "application/x-ndjson", "application/json-lines",
    }:  # fmt: skip
        return [read_json(line, longest=longest) for line in body.split(b"\n") if line.strip()]
    value = document(body, longest)
    return value if isinstance(value, list) else [value]


def with_places(documents: Sequence[object]) -> list[Document]:
    """Return documents with their places in a body: `[1]`, or none for a single one."""
    if len(documents) == 1:
        return [("", documents[0])]
    return [(f"[{number}]", one) for number, one in enumerate(documents)]


def reads_model(model: type[BaseModel]) -> dict[str, Any]:
    """Return what OpenAPI says of a body that `value_of` reads."""
    schema = _named(model.__name__, model.model_json_schema())
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _named(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return a reference to a schema with its definition, which web/schema.py moves away.

    A generator of clients calls the model of a nameless schema after its place.
    """
    return {"$ref": f"#/$defs/{name}", "$defs": {name: schema}}


def value_of(body: bytes, model: type[Model]) -> Model:
    """Return the model of a JSON body; raises InvalidDocument with all of its faults.

    Not by FastAPI: it would read the body before it knows whether the token permits the request.
    """
    try:
        return model.model_validate(document(body))
    except ValidationError as error:
        raise InvalidDocument(problems_of(error)) from None


def expected_tag(if_match: str | None, if_none_match: str | None = None) -> str | None:
    """Return the ETag that a change expects: empty for nothing yet, None for any.

    Raises InvalidDocument for a header that no answer gave.
    """
    if if_none_match is not None:
        if if_none_match.strip() != "*":
            raise InvalidDocument([Problem("If-None-Match", if_none_match, "write *")])
        return ""
    if if_match is None or if_match.strip() == "*":
        return None
    tag = if_match.strip().removeprefix("W/").strip('"')
    if not tag or len(tag) > LONGEST_TAG:
        raise InvalidDocument([Problem("If-Match", if_match, NO_TAG)])
    return tag


def required_tag(if_match: str | None, if_none_match: str | None) -> str | None:
    """Return the ETag that a change expects; raises PreconditionRequired without a header."""
    if if_match is None and if_none_match is None:
        raise PreconditionRequired(
            "send If-Match with the ETag that you read, or If-None-Match: * to create"
        )
    return expected_tag(if_match, if_none_match)


def revision_in(tag: str | None) -> int | None:
    """Return the revision that an ETag names: 0 for nothing yet, None for any."""
    if not tag:
        return None if tag is None else 0
    if not tag.isdecimal():
        raise InvalidDocument([Problem("If-Match", tag, NO_TAG)])
    return int(tag)


def etag(tag: object) -> dict[str, str]:
    """Return the header that names a revision or a document."""
    return {"ETag": f'"{tag}"'}
