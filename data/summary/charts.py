"""Small column charts as PNG, drawn in a child process with limits.

They are readable on light and dark backgrounds.

Matplotlib is used without pyplot, which keeps figures in a global. Charts contain no user text,
which may need other fonts: the mail shows the names beside the picture.
"""

import os
from base64 import b64decode, b64encode
from collections.abc import Sequence
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any

from data.summary.history import Point
from data.summary.numbers import short_number
from tasks.bounded import client
from tasks.bounded.child import Call
from tasks.bounded.limits import Limits
from tasks.bounded.watch import Watch

MOST_BYTES = 48 * 1024
WIDTH_PX, HEIGHT_PX = 1120, 380
_DPI = 200
_NOW, _BEFORE, _INK = "#2f7de1", "#9db8d9", "#7d8894"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# A chart of a single value would be one wide block.
_LEAST_SLOTS = 6
# Most of the address space is Matplotlib's own.
DRAWING = Limits(memory_mb=1024, cpu_s=20, time_s=60, shown="the charts of the summary: drawing")


def drawn(charts: Sequence[Sequence[Point]], home: Path) -> list[bytes | None]:
    """Return a picture of each chart, None for one that is too large; raises OverLimit."""
    if not charts:
        return []
    points = [[(point.at.isoformat(), point.value) for point in chart] for chart in charts]
    call = client.Call("data.summary.charts:draw_charts", {"charts": points, "home": str(home)})
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


def load_matplotlib(home: Path) -> None:
    """Keep Matplotlib's font cache in the home folder, which is writable."""
    os.environ.setdefault("MPLCONFIGDIR", str(home / "matplotlib"))


def columns_png(points: Sequence[Point]) -> bytes | None:
    """Return a column chart of the points, the last one highlighted; None if it is too large.

    The same points give the same bytes on every machine.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH_PX / _DPI, HEIGHT_PX / _DPI), dpi=_DPI)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.01, 0.2, 0.98, 0.6))
    _draw(axes, points)
    stream = BytesIO()
    figure.savefig(
        stream, format="png", transparent=True, metadata={"Software": None},
        pil_kwargs={"optimize": True},
    )  # fmt: skip
    png = stream.getvalue()
    return png if len(png) <= MOST_BYTES else None


def _draw(axes: Any, points: Sequence[Point]) -> None:
    values = [float(point.value) for point in points]
    # Drawn relative to the largest, so that no number is too large.
    largest = max(map(abs, values)) or 1.0
    heights = [value / largest for value in values]
    slots = max(len(points), _LEAST_SLOTS)
    places = [slots - len(points) + n for n in range(len(points))]
    colors = [_BEFORE] * (len(points) - 1) + [_NOW]
    axes.bar(places, heights, width=0.72, color=colors, linewidth=0)
    axes.axhline(0, color=_INK, linewidth=0.6)
    axes.set_xlim(-0.5, slots - 0.5)
    axes.set_ylim(min(0.0, *heights), max(0.0, *heights) or 0.02)
    axes.set_axis_off()
    _write(axes, places, heights, points)


def _write(
    axes: Any, places: Sequence[int], heights: Sequence[float], points: Sequence[Point]
) -> None:
    low, high = axes.get_ylim()
    style: dict[str, Any] = {"color": _INK, "clip_on": False, "fontproperties": _font()}
    are_few = len(points) <= _LEAST_SLOTS
    for n, place in enumerate(places):
        # Long numbers at the ends must stay inside the picture.
        side = "right" if n == len(points) - 1 else "left" if place == 0 else "center"
        x = place + {"right": 0.4, "left": -0.4, "center": 0.0}[side]
        if are_few:
            top = max(heights[n], 0.0) + (high - low) * 0.05
            axes.text(x, top, short_number(points[n].value), ha=side, **style)
        if n in {0, len(points) - 1}:
            label = _day(points[n])
            # Narrow columns have no room for numbers above them.
            label += "" if are_few else f": {short_number(points[n].value)}"
            axes.text(x, low - (high - low) * 0.06, label, ha=side, va="top", **style)


def _font() -> Any:
    """Return Matplotlib's bundled font, the same on every machine."""
    import matplotlib
    from matplotlib.font_manager import FontProperties

    file = Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")
    return FontProperties(fname=str(file), size=13)


def _day(point: Point) -> str:
    # Not by strftime, whose months follow the process's locale.
    return f"{point.at.day} {_MONTHS[point.at.month - 1]}"
