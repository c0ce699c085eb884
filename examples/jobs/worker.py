"""A worker for jobs in Python, without a dependency: python worker.py [QUEUE]

MINUTEBOOK_URL and MINUTEBOOK_TOKEN say where the server is, and who asks.
"""

import json
import os
import sys
import time
from http.client import HTTPException
from urllib.request import Request, urlopen

SERVER = os.environ["MINUTEBOOK_URL"]
HEADERS = {"Authorization": f"Bearer {os.environ['MINUTEBOOK_TOKEN']}"}
QUEUE = sys.argv[1] if len(sys.argv) > 1 else "quick"


def ask(path: str, said: dict | None = None) -> dict | None:
    """Return the answer of the server, None for an empty one."""
    body = None if said is None else json.dumps(said).encode()
    with urlopen(Request(SERVER + path, body, HEADERS), timeout=60) as answer:
        return json.loads(answer.read() or b"null")


def work(job: dict) -> dict:
    """Do the work of a job; return its figures. Yours goes here."""
    with urlopen(job["url"], timeout=20) as answer:
        return {"bytes": len(answer.read())}


while True:
    try:
        if job := ask(f"/jobs/next?queue={QUEUE}"):
            try:
                verb, said = "complete", {"result": work(job)}
            except Exception as error:
                verb, said = "error", {"error": str(error) or repr(error)}
            ask(f"/jobs/{job['id']}/{verb}", {"lease": job["lease"], **said})
            print(verb, job["url"], flush=True)
    except (OSError, HTTPException) as error:
        # 409: another worker got the job meanwhile. 503, or no answer: the server stops; ask again.
        print(error, file=sys.stderr)
        time.sleep(1)
