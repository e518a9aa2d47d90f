"""``python -m kraftd``: the same as ``kraftd``."""

from kraftd.cli.main import main

if __name__ == "__main__":
    main()
