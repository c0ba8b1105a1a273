"""`python -m quorisk` is the `quorisk` command."""

from quorisk.command.start import main

if __name__ == "__main__":
    main()
