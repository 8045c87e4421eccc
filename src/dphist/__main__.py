"""``python -m dphist`` is the command line."""

from dphist.cli import main

if __name__ == "__main__":
    main()
