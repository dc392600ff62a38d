"""``python -m backread`` is the command ``backread``."""

from backread.cli import main

if __name__ == "__main__":
    main()
