"""`python -m quorisk` is the `quorisk` command."""

from quorisk.command.start import start

if __name__ == "__main__":
    start()
