"""The kernel and its doors do not know the words of a plug-in: a plug-in brings them itself."""

import re

from tests.acceptance.processes import ROOT

KERNEL = (
    *("broker", "cli", "cron", "models", "processes", "runtime", "scheduler", "services", "tasks"),
    "web",
)
FILES = [
    file
    for room in KERNEL
    for file in sorted((ROOT / room).rglob("*"))
    if file.suffix in {".py", ".html", ".toml", ".js"} and file.name != "htmx.min.js"
]
OF_DATA = re.compile(
    r"send_email|execsum|snapshots|\bdomains\b|disk_mb|new data|[`'\"](?:refresh|publish)[`'\"]",
    re.IGNORECASE,
)


def test_no_file_of_the_kernel_names_what_data_brings() -> None:
    named = {file: OF_DATA.findall(file.read_text(encoding="utf-8")) for file in FILES}

    assert {file: words for file, words in named.items() if words} == {}
