"""Every door of an installation at which its verdict can be read, asked at one instant."""

import html
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from runtime.clock import wait_for
from services.verdict.finding import OF_ACTIONS
from tests.acceptance.installation import Installation
from tests.acceptance.web_door import client, start_web

# A daemon is missed after two ticks, an operation after 15 s; a busy machine needs more.
SETTLED_S = 120.0
# What a browser says of a form on one of our own pages.
OWN_PAGE = {"Sec-Fetch-Site": "same-origin"}
SAMPLE = re.compile(r'^minutebook_findings\{kind="(\w+)",severity="\w+"\} (\S+)$', re.M)
HEADLINE = re.compile(r'<section class="verdict.*?<h[12][^>]*>(.*?)</h[12]>', re.S)
TAG = re.compile(r"<[^>]+>")
# What a door shows, by the door.
Said = dict[str, Any]


@dataclass
class Doors:
    """The commands of an installation, and the API and the pages of one of its web processes."""

    installation: Installation
    api: httpx.Client
    pages: httpx.Client

    def stand(self, state: str, *kinds: str) -> Mapping[str, Any]:
        """Wait until the verdict is `state` by findings of just these kinds, then ask all doors."""
        wanted = (state, set(kinds))
        seen: list[tuple[str, set[str]]] = []

        def stands() -> bool:
            found = self.verdict()
            stand = (found["state"], set(found["counts"]))
            if stand not in seen[-1:]:
                seen.append(stand)
            return stand == wanted

        if not wait_for(stands, SETTLED_S):
            raise AssertionError(f"not {wanted} but {seen}: {self._story()}")
        return self.agree()

    def agree(self) -> Mapping[str, Any]:
        """Wait until all doors give the API's verdict, the same before and after; return it.

        Pages and metrics keep an answer for seconds.
        """
        differ: Said = {}

        def is_one() -> bool:
            before = self.verdict()
            wanted, said = self._expected(before), self._ask()
            differ.clear()
            differ.update({door: one for door, one in said.items() if one != wanted[door]})
            differ.update(self._left_out(before))
            if before != self.verdict():
                differ["/api/status"] = before
            return not differ

        assert wait_for(is_one, SETTLED_S), f"{differ}, where the API says {self.verdict()}"
        return self.verdict()

    def verdict(self) -> dict[str, Any]:
        """Return the verdict of the API, without instants that each tick moves."""
        return _still(self._get("/api/status")["verdict"])

    def _ask(self) -> Said:
        status = self.installation.cli("status")
        return {
            "status": _still(status["verdict"]),
            "status, unhealthy": status["actions"]["unhealthy"],
            "status --check": self._code("status", "--check", "verdict"),
            "/api/overview": _still(self._get("/api/overview")["verdict"]),
            "/api/actions": len(self._get("/api/actions", standing="troubled", all_apps=True)),
            "/metrics": self._metrics(),
            "/": self._headline("/"),
            "/health": self._headline("/health"),
        }

    def _expected(self, verdict: dict[str, Any]) -> Said:
        unhealthy = sum(verdict["counts"].get(one, 0) for one in OF_ACTIONS)
        return {
            "status": verdict,
            "status, unhealthy": unhealthy,
            "status --check": int(verdict["state"] == "broken"),
            "/api/overview": verdict,
            "/api/actions": unhealthy,
            "/metrics": verdict["counts"],
            "/": verdict["sentence"],
            "/health": verdict["sentence"],
        }

    def _left_out(self, verdict: dict[str, Any]) -> Said:
        """Return the findings that doctor leaves out: it lists no single actions."""
        troubles = {one["text"] for one in self._get("/api/doctor") if one["level"] != "ok"}
        found = {one["text"] for one in verdict["findings"] if one["uid"] is None}
        return {"doctor": found - troubles} if found - troubles else {}

    def _headline(self, path: str) -> str:
        """Return the verdict's sentence as a page shows it."""
        page = self.pages.get(path)
        found = HEADLINE.search(page.text)
        assert found is not None, page.text
        return html.unescape(TAG.sub("", found[1])).strip()

    def _metrics(self) -> dict[str, int]:
        text = self.api.get("/metrics").raise_for_status().text
        return {kind: int(float(count)) for kind, count in SAMPLE.findall(text)}

    def _get(self, path: str, **params: Any) -> Any:
        answers: list[httpx.Response] = []

        def is_there() -> bool:
            answers.append(self.api.get(path, params=params))
            return answers[-1].status_code != httpx.codes.SERVICE_UNAVAILABLE

        # A session that was ended is noticed by the next request.
        assert wait_for(is_there, SETTLED_S), answers[-1].text
        return answers[-1].raise_for_status().json()

    def _code(self, *arguments: str) -> int:
        command = self.installation.command(*arguments)
        return self.installation.processes.run(command).returncode

    def _story(self) -> str:
        started = self.installation.processes.started
        logs = [f"--- {one.name}\n{one.text()[-1500:]}" for one in started]
        return "\n".join([str(self.verdict()), *logs])


def _still(verdict: dict[str, Any]) -> dict[str, Any]:
    """Return a verdict without the instants of its findings: each tick moves some."""
    findings = [{**one, "since": None} for one in verdict["findings"]]
    return {**verdict, "findings": findings}


@contextmanager
def doors_of(
    installation: Installation, settings: Mapping[str, str] | None = None
) -> Iterator[Doors]:
    """Yield the doors of an installation, with a web process of their own."""
    _, address = start_web(installation, settings)
    browser = httpx.Client(base_url=address, timeout=60, headers=OWN_PAGE)
    with client(installation, address, role="admin") as (api,), browser as pages:
        token = api.headers["Authorization"].removeprefix("Bearer ")
        assert pages.post("/sign-in", data={"token": token}).status_code == 303
        yield Doors(installation, api, pages)
