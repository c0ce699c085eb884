"""The results as a table in Markdown: a row for each question, a column for each scheduler."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.peers.contestants import ALL

NOT_SUPPORTED = "not supported"
NOT_RUN = "-"
FAULTS = {
    "killed": "`kill -9` in mid-send",
    "away": "broker away over the minute",
    "emptied": "broker emptied (`FLUSHALL`) before a worker took the messages",
    "two": "two instances at once",
}
CLOCKS = {
    "spring": "night in which clocks go forward",
    "autumn": "night in which clocks go back",
    "down": "20 minutes of downtime, due once in them",
    "down_each": "20 minutes of downtime, each run wanted",
}
Results = Mapping[str, Any]
Show = Callable[[Mapping[str, Any]], str]


def table(results: Results) -> str:
    """Return the table of what was run."""
    titles = [kind.title for kind in ALL]
    rows = [["", *titles], ["---"] * (len(titles) + 1)]
    rows += _speed_rows(results, titles)
    for part, names in (("faults", FAULTS), ("clocks", CLOCKS)):
        if part in results:
            rows += [_fault_row(results[part], name, what) for name, what in names.items()]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _speed_rows(results: Results, titles: Sequence[str]) -> list[list[str]]:
    wanted: list[tuple[str, str, Show]] = [
        ("due", "{:,} due at once: until all are sent", _sent),
        ("due", "{:,} due at once: memory", _memory),
        ("idle", "{:,} schedules: start until the first tick", _start),
        ("idle", "{:,} schedules, none due: CPU", _cpu),
        ("idle", "{:,} schedules, none due: memory", _memory),
    ]
    rows = []
    for part, what, show in wanted:
        cells = results.get(part, {})
        for place in range(max((len(one) for one in cells.values()), default=0)):
            count = cells[titles[0]][place]["count"]
            rows.append([what.format(count), *(show(cells[title][place]) for title in titles)])
    return rows


def _fault_row(found: Results, name: str, what: str) -> list[str]:
    cells = [found[kind.title].get(name) for kind in ALL]
    due = next((one["due"] for one in cells if one and "due" in one), 0)
    return [f"{what}: lost / doubled of {due:,}", *map(_verdict, cells)]


def _verdict(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return NOT_SUPPORTED
    if "error" in cell:
        return str(cell["error"])
    return f"{cell['lost']:,} / {cell['doubled']:,}"


def _sent(cell: Mapping[str, Any]) -> str:
    if cell["start_s"] is None:
        return "did not start"
    if cell["sent"] < cell["count"]:
        return f"{cell['sent']:,} in {cell['took_s']:.0f} s"
    return f"{cell['took_s']:.2f} s"


def _start(cell: Mapping[str, Any]) -> str:
    return "did not start in time" if cell["start_s"] is None else f"{cell['start_s']:.1f} s"


def _cpu(cell: Mapping[str, Any]) -> str:
    # While it starts it is not idle.
    return NOT_RUN if cell["start_s"] is None else f"{cell['cpu_percent']:.1f} %"


def _memory(cell: Mapping[str, Any]) -> str:
    return f"{cell['rss_mb']:.0f} MB" if "rss_mb" in cell else NOT_RUN
