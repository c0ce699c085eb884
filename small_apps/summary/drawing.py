"""The charts of a summary, drawn in a child process with limits."""

from base64 import b64decode, b64encode
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from small_apps.bounded import client
from small_apps.bounded.child import Call
from small_apps.bounded.limits import Limits
from small_apps.summary.charts import columns_png, load_matplotlib
from small_apps.summary.history import Point
from small_apps.watch import Watch

# Most of the address space is Matplotlib's own.
DRAWING = Limits(memory_mb=1024, cpu_s=20, time_s=60, shown="the charts of the summary: drawing")


def drawn(charts: Sequence[Sequence[Point]], home: Path) -> list[bytes | None]:
    """Return a picture of each chart, None for one that is too large; raises OverLimit."""
    if not charts:
        return []
    points = [[(point.at.isoformat(), point.value) for point in chart] for chart in charts]
    call = client.Call(
        "small_apps.summary.drawing:draw_charts", {"charts": points, "home": str(home)}
    )
    pictures = client.run(call, DRAWING, Watch())
    return [None if one is None else b64decode(one) for one in pictures]


def draw_charts(call: Call) -> list[str | None]:
    """Return the call's charts as pictures in Base64: in the child."""
    load_matplotlib(Path(call.arguments["home"]))
    made = (
        columns_png([Point(datetime.fromisoformat(at), value) for at, value in chart])
        for chart in call.arguments["charts"]
    )
    return [None if png is None else b64encode(png).decode() for png in made]
