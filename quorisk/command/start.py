"""The start of the `quorisk` command: Ctrl-C ends it with one line even while its modules load."""

from quorisk.command.interrupted import interrupted


def main() -> None:
    """The console entry; see `command.main`."""
    try:
        from quorisk.command.main import main as command
    except KeyboardInterrupt:
        interrupted()
    command()
