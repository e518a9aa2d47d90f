"""``kraftd`` and ``python -m kraftd``: a command of ``kraftd.cli.main``, loaded from the archive of code."""

from kraftd.cli.code_archive import use_archive


def main() -> None:
    """Run a command and end the process with its exit code."""
    use_archive()
    from kraftd.cli.main import main as run_command

    run_command()


if __name__ == "__main__":
    main()
