"""A worker over HTTP for the tests: `job_worker.py URL TOKEN`; it says on stderr what it does.

It holds each job until the file of its `meta` exists, or until it is told to stop. It completes a
job that it has lost as well, and reports each end twice: the server must bear with that.
"""

import sys
from pathlib import Path
from threading import Event
from typing import Any

import httpx

BEAT_S = 0.2


def say(*words: object) -> None:
    """Write one line."""
    sys.stderr.write(" ".join(map(str, words)) + "\n")
    sys.stderr.flush()


def work(client: httpx.Client, job: dict[str, Any]) -> None:
    """Hold a job until its gate is open, then report it."""
    lease = {"lease": job["lease"]}
    client.post(f"/jobs/{job['id']}/beat", json=lease)
    say("begins", job["operation_id"])
    verb, said = "complete", {"result": {"held": True}}
    while not Path(job["meta"]["gate"]).exists():
        Event().wait(BEAT_S)
        beat = client.post(f"/jobs/{job['id']}/beat", json=lease)
        if beat.status_code != 200:
            break
        if stop := beat.json()["stop"]:
            verb, said = "error", {"error": stop}
            break
    for _ in range(2):
        answer = client.post(f"/jobs/{job['id']}/{verb}", json={**lease, **said})
        say(verb, answer.status_code)


if __name__ == "__main__":
    _headers = {"Authorization": f"Bearer {sys.argv[2]}"}
    with httpx.Client(base_url=sys.argv[1], headers=_headers, timeout=60) as _client:
        say("asks")
        while True:
            _answer = _client.get("/jobs/next")
            if _answer.status_code == 200:
                work(_client, _answer.json())
