"""Settings of the HTTP door."""

import re
from ipaddress import ip_network
from typing import Self

from pydantic import Field, field_validator, model_validator

from runtime.sections import Names, Section
from runtime.urls import check_web_url, host_and_port

# Workers of this machine ask below /api, /jobs and /tasks without it.
_ROOT_PATH = re.compile(r"(?!/(?:api|jobs|tasks)(?:/|$))(/[A-Za-z0-9._~-]+)*")
_HEADER = re.compile(r"[A-Za-z0-9-]*")


class WorkSettings(Section):
    """Jobs, for workers in any language."""

    pop_timeout_s: float = Field(
        30, gt=0, le=300, description="seconds a request for a job waits for one"
    )


class WebSettings(Section):
    """`minutebook web`: the HTTP API and the dashboard."""

    host: str = Field("127.0.0.1", description="address to listen on; loopback by default")
    port: int = Field(8265, ge=0, le=65_535, description="port to listen on; 0 for any free one")
    root_path: str = Field("", description="path below which a proxy serves it: /minutebook")
    public_url: str = Field(
        "", description="where people find the dashboard: notices carry links to it"
    )
    proxies: Names = Field(
        (), description="addresses of proxies whose X-Forwarded-For and -Proto count, by commas"
    )
    origins: Names = Field(
        (), description="origins of other sites whose pages may call the API (CORS), by commas"
    )
    max_body_mb: int = Field(16, ge=1, le=1024, description="largest body of a request in MiB")
    download_s: float = Field(
        3600, gt=0, le=86_400, description="seconds one download of rows may take"
    )
    sso_header: str = Field(
        "", description="header in which a proxy of SCHED_WEB_PROXIES names who signed in"
    )
    sso_role_header: str = Field(
        "", description="header in which that proxy names the person's role; viewer without it"
    )

    @field_validator("public_url")
    @classmethod
    def _is_a_url(cls, value: str) -> str:
        if value:
            check_web_url(value)
        return value.rstrip("/")

    @property
    def local_url(self) -> str:
        """Where this machine finds it, without `root_path`."""
        every = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - nothing listens here
        host = every.get(self.host, self.host)
        return f"http://{host_and_port(host, self.port)}"

    @field_validator("root_path")
    @classmethod
    def _begins_with_a_slash(cls, value: str) -> str:
        if not _ROOT_PATH.fullmatch(value):
            raise ValueError(
                "must be empty, or begin and not end with /, such as /minutebook; and not be below "
                "/api, /jobs or /tasks"
            )
        return value

    @field_validator("proxies")
    @classmethod
    def _are_addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value if value != ("*",) else ():
            if not _is_network(one):
                raise ValueError(
                    f"{one!r} is not an address; write addresses or networks, such as 10.0.0.7 and "
                    "10.0.0.0/8, or * alone for all"
                )
        return value

    @field_validator("sso_header", "sso_role_header")
    @classmethod
    def _is_a_header(cls, value: str) -> str:
        if not _HEADER.fullmatch(value):
            raise ValueError("must be the name of a header, such as X-Auth-Request-Email")
        return value

    @model_validator(mode="after")
    def _a_proxy_for_its_header(self) -> Self:
        if self.sso_role_header and not self.sso_header:
            raise ValueError(
                f"sso_role_header {self.sso_role_header} names the role of a person; name the"
                " header of the person in SCHED_WEB_SSO_HEADER"
            )
        if self.sso_header and not self.proxies:
            raise ValueError(
                f"sso_header {self.sso_header} counts only from a proxy; name its address in"
                " SCHED_WEB_PROXIES"
            )
        return self


def _is_network(text: str) -> bool:
    try:
        ip_network(text)
    except ValueError:
        return False
    return True
