"""Tell a maintainer, before an upload, whether a release is as it should be.

    python -m release.check [--index URL]

It asks the index whether our names are free, compares what names our version, and installs both
wheels into empty environments. One line for each check; the exit code is 1 if any is a problem.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from release.dist import ROOT
from release.findings import Finding
from release.names import INDEX, check_names
from release.project import read_projects
from release.versions import check_versions
from release.wheels import check_wheels


def main(arguments: list[str] | None = None) -> int:
    """Run all checks; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m release.check")
    parser.add_argument("--index", default=INDEX, help="the index to ask; %(default)s by default")
    index = parser.parse_args(arguments).index
    projects = read_projects(ROOT)
    named = chain(check_names(index, projects), check_versions(ROOT, projects))
    return report(chain(named, _of_wheels()))


def _of_wheels() -> Iterator[Finding]:
    with TemporaryDirectory(prefix="minutebook-check-") as folder:
        yield from check_wheels(Path(folder))


def report(findings: Iterable[Finding]) -> int:
    """Print each finding as it comes; return 1 if one is a problem, else 0."""
    code = 0
    for finding in findings:
        print(finding, flush=True)
        code = code if finding.is_ok else 1
    return code


if __name__ == "__main__":
    sys.exit(main())
