"""CHANGELOG.md and the pages: the newest release, images and wheels are of this version."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHANGES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_newest_release_is_that_of_the_package() -> None:
    package = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    releases = re.findall(r"^## (\d+\.\d+\.\d+)\b", CHANGES, re.M)
    assert releases[0] == package["project"]["version"]


# An image, the tag that kustomize gives one, and a wheel that a page names.
TAGS = re.compile(
    r"\bminutebook(?:-data)?:(\d[\w.]*\w)"
    r"|name: minutebook(?:-data)?, newTag: ([\w.]+\w)"
    r"|\bminutebook(?:_client)?-(\d[\w.]*\w)-py3"
)


def test_each_image_and_wheel_that_is_named_is_of_this_version() -> None:
    package = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    places = ("docker-compose.yml", "deploy/kubernetes/*.yaml", "docs/**/*.md", "*.md")
    files = [file for each in places for file in ROOT.glob(each)]

    named = {
        "".join(found) for file in files for found in TAGS.findall(file.read_text(encoding="utf-8"))
    }
    assert named == {package["project"]["version"]}
