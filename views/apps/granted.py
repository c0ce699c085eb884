"""What a small app may reach, as answers and requests describe it."""

from typing import Annotated, Any

from pydantic import GetJsonSchemaHandler

from minutebook.grants import Grants

KINDS: dict[str, str] = {
    "files": "Files and folders beneath the data root.",
    "connections": "Database connections that the settings name.",
    "readers": "Readers that a module registers.",
    "env": "Variables and files of secrets that documents refer to.",
    "mail": "Addresses that hooks may mail to.",
    "notify": "Channels of chats and pagers that hooks may notify.",
    "tasks": "Tasks of the Celery application.",
    "queues": "Queues beside `quick`, `heavy` and `default`.",
    "exchanges": "Exchanges of the Celery application's broker.",
    "applications": "Celery applications beside the default one.",
    "steps": "Steps that are not built in.",
    "commands": "Programs of the step `command`: `backup.sh(DAY)`, or `shell`.",
}


class _WithTexts:
    """Describes each kind in the schema; the class itself is light, and needs no pydantic."""

    def __get_pydantic_json_schema__(
        self, core: Any, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        made = handler(core)
        fields = handler.resolve_ref_schema(made)["properties"]
        for kind, text in KINDS.items():
            fields[kind]["description"] = text
        return made


ShownGrants = Annotated[Grants, _WithTexts()]
