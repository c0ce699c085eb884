import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from PIL import Image

from data.summary.charts import HEIGHT_PX, MOST_BYTES, WIDTH_PX, columns_png, load_matplotlib
from data.summary.history import Point

NOW = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)


@pytest.fixture(autouse=True, scope="module")
def _fonts(tmp_path_factory: pytest.TempPathFactory) -> None:
    load_matplotlib(tmp_path_factory.mktemp("home"))


def picture(*values: float) -> bytes:
    """Return the chart of values a week apart."""
    first = NOW - timedelta(weeks=len(values) - 1)
    points = [Point(first + timedelta(weeks=n), value) for n, value in enumerate(values)]
    png = columns_png(points)
    assert png is not None
    return png


def opened(png: bytes, tmp_path: Path) -> Image.Image:
    """Return the picture, decoded."""
    file = tmp_path / "chart.png"
    file.write_bytes(png)
    return Image.open(file).convert("RGBA")


@pytest.mark.parametrize(
    "values",
    [
        (3, 4), (0, 0), (-5, 3, -1), (1e300, -1e300), (10**18,) * 12, tuple(range(12)),
        (0.0001, 0.0002),
    ],
)  # fmt: skip
def test_a_chart_is_small_and_of_one_size(values: tuple[float, ...], tmp_path: Path) -> None:
    png = picture(*values)

    assert len(png) <= MOST_BYTES
    assert opened(png, tmp_path).size == (WIDTH_PX, HEIGHT_PX)


def test_the_same_points_give_the_same_bytes() -> None:
    assert picture(1, 2, 3) == picture(1, 2, 3)


def test_the_ground_shows_through_on_light_and_dark(tmp_path: Path) -> None:
    assert opened(picture(1, 2), tmp_path).getpixel((0, 0)) == (255, 255, 255, 0)


def test_the_last_column_is_set_off(tmp_path: Path) -> None:
    found = opened(picture(5, 5), tmp_path).getcolors(1_000_000) or []

    colors = {color for _count, color in found}
    assert {(0x2F, 0x7D, 0xE1, 255), (0x9D, 0xB8, 0xD9, 255)} <= colors


def test_matplotlib_is_loaded_for_a_chart_alone_and_without_pyplot(tmp_path: Path) -> None:
    text = (
        "import sys, data.steps.send_execsum, tasks.registry\n"
        "import data.summary.charts as c\n"
        "assert 'matplotlib' not in sys.modules\n"
        "from datetime import datetime, UTC\n"
        "from data.summary.history import Point\n"
        "c.columns_png([Point(datetime(2026, 1, 1, tzinfo=UTC), 1.0)])\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules\n"
    )

    environment = {**os.environ, "MPLCONFIGDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", text], check=True, env=environment)
