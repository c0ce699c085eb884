"""Mutation guided by coverage, with atheris: `python -m tests.fuzz.guided KIND SEED SECONDS`.

The process ends at the first failure, whose input libFuzzer writes to the corpus.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import atheris

ROOMS = ("cron", "data", "models", "runtime", "minutebook")

with atheris.instrument_imports(include=list(ROOMS)):
    from tests.fuzz.kinds import KINDS
from tests.fuzz.kept import FOLDER, words  # noqa: E402 - after what is instrumented


def main() -> None:
    """Fuzz; libFuzzer ends the process."""
    name, seed, seconds = sys.argv[1:]
    kind = KINDS[name]
    with TemporaryDirectory() as found, kind.opened() as check:
        dictionary = Path(found, "words")
        dictionary.write_bytes(b"\n".join(_entry(word) for word in words(name)) + b"\n")
        fresh = Path(found, "new")
        fresh.mkdir()
        options = [
            f"-max_total_time={seconds}", f"-seed={seed}", f"-dict={dictionary}", "-max_len=20000",
            "-timeout=20", "-verbosity=0", f"-artifact_prefix={FOLDER / name}/found-",
        ]  # fmt: skip
        atheris.Setup([sys.argv[0], *options, str(fresh), str(FOLDER / name)], check)
        atheris.Fuzz()


def _entry(word: bytes) -> bytes:
    return b'"' + b"".join(b"\\x%02x" % byte for byte in word) + b'"'


if __name__ == "__main__":
    main()
