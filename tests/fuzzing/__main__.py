"""``make fuzz ARGS="SECONDS [SEED]"``: fuzzes the C extensions side by side, with sanitizers.

Each gets that many seconds (60). Without a seed it begins with a random one. A fault ends its target and is
printed with the seed of its round, which repeats it.
"""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import randrange

from tests.fuzzing import sanitized

SEEDS = 1 << 40


def main(arguments: list[str]) -> int:
    """Return 1 if a target found a fault, 2 if nothing could be run."""
    try:
        seconds = float(arguments[0]) if arguments else 60.0
        seed = int(arguments[1]) if len(arguments) > 1 else randrange(SEEDS)
    except ValueError:
        print(f"make fuzz: {' '.join(arguments)}: SECONDS [SEED] are numbers", file=sys.stderr)
        return 2
    if lack := sanitized.lacking():
        print(f"make fuzz: {lack}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="kraftd-fuzz-") as home, ThreadPoolExecutor() as pool:

        def fuzz(name: str) -> bool:
            done = sanitized.run_target(name, sanitized.build(name, Path(home)), seconds, seed)
            print((done.stdout + done.stderr).rstrip(), flush=True)
            return done.returncode == 0

        sound = list(pool.map(fuzz, sanitized.SOURCES))
    return 0 if all(sound) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
