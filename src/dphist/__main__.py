"""``python -m dphist`` is the command line."""

from dphist.cli import run

if __name__ == "__main__":
    run()
