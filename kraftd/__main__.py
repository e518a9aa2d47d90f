"""``kraftd`` and ``python -m kraftd``: a command of ``kraftd.cli.main``, loaded from the archive of code."""

import gc

from kraftd.cli.code_archive import use_archive

# Of collections while objects are new: modules that are being imported are no garbage.
GC_THRESHOLD = 100_000


def main() -> None:
    """Run a command and end the process with its exit code."""
    gc.set_threshold(GC_THRESHOLD)
    use_archive()
    from kraftd.cli.main import main as run_command

    run_command()


if __name__ == "__main__":
    main()
