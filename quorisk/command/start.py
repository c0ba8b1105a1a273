"""The start of the `quorisk` command: Ctrl-C ends it with one line even while its modules load."""

from quorisk.command.interrupted import interrupted


def main() -> None:
    """The console entry; see `command.main.run_command`."""
    try:
        from quorisk.command.main import run_command
    except KeyboardInterrupt:
        interrupted()
    run_command()
