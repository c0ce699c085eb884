"""Run every benchmark on both stores; print the table and write benchmarks/results/<date>.json.

python -m benchmarks.run_all [--small] [--store sqlite|postgresql] [--output FILE]
"""

import json
import sys
from pathlib import Path

from benchmarks import (
    bench_apply,
    bench_bytes,
    bench_commands,
    bench_downtime,
    bench_due,
    bench_events,
    bench_followed,
    bench_idle,
    bench_jobs,
    bench_lateness,
    bench_limit,
    bench_mail,
    bench_many_due,
    bench_pages,
    bench_refresh,
    bench_scale,
    bench_simulate,
    bench_start,
    bench_web,
    bench_worker,
)
from benchmarks.harness import ROOT, Measure, arguments, machine, run

# From the second to the sixth they share one filled database.
MEASURES: tuple[Measure, ...] = (
    bench_commands.measure,
    bench_start.measure,
    bench_idle.measure,
    bench_due.measure,
    bench_limit.measure,
    bench_many_due.measure,
    bench_scale.measure,
    bench_lateness.measure,
    bench_downtime.measure,
    bench_apply.measure,
    bench_events.measure,
    bench_worker.measure,
    bench_followed.measure,
    bench_bytes.measure,
    bench_simulate.measure,
    bench_mail.measure,
    bench_refresh.measure,
    bench_jobs.measure,
    bench_web.measure,
    bench_pages.measure,
)


def main() -> None:
    """Run all benchmarks; print and write the figures."""
    options = arguments(__doc__ or "")
    found = machine()
    print(", ".join(f"{key} {value}" for key, value in found.items()), flush=True)
    found["figures"] = run(MEASURES, options.stores, options.sizes)
    file = options.output or ROOT / "benchmarks" / "results" / f"{found['date']}.json"
    Path(file).parent.mkdir(exist_ok=True)
    Path(file).write_text(json.dumps(found, indent=1) + "\n")
    print(f"written to {file}", file=sys.stderr)


if __name__ == "__main__":
    main()
