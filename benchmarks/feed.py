"""Feeding a model: Penstock beside its peers and beside bare C loops, on two cores.

python -m benchmarks.feed --setup            install the peers, each in an environment of its own
python -m benchmarks.feed                    everything: A A2 A256 B C gil tune memory first open
python -m benchmarks.feed A B --rounds 5     only these
python -m benchmarks.feed --json out.json    the figures, with the versions of everybody
"""

from __future__ import annotations

from benchmarks.contests import check_names, parser_of, run
from benchmarks.feeding.environments import PACKAGES, Environments
from benchmarks.feeding.lines import LINES
from benchmarks.feeding.workloads import WORKLOADS

NAMES = ["A", "A2", "A256", "B", "C", "gil", "tune", "memory", "first", "open"]


def set_up(environments: Environments, names: list[str]) -> None:
    for name in names or PACKAGES:
        print(f"{name:<14}{environments.set_up(name) or 'installed'}", flush=True)


def main() -> None:
    parser = parser_of(__doc__, NAMES)
    parser.add_argument("--setup", action="store_true", help="install the peers that are named, or all, and stop")
    options = parser.parse_args()
    check_names(parser, options.names, list(PACKAGES) if options.setup else NAMES)
    if options.setup:
        set_up(Environments(options.peers_home), options.names)
    else:
        run("feed", options, WORKLOADS, LINES)


if __name__ == "__main__":
    main()
