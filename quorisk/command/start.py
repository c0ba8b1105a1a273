"""Where the `quorisk` command begins: Ctrl-C ends it with 130 and one line, even while its modules load."""

from quorisk.command.interrupt import interrupted


def main() -> None:
    """The console entry; see `command.main`."""
    try:
        from quorisk.command.main import main as command
    except KeyboardInterrupt:
        interrupted()
    command()
