"""What `-v` prints: the messages that evaluand logs with the standard `logging`.

In Python, `logging.basicConfig(level="INFO")` shows the same.
"""

import sys

import click

from evaluand.report.text import safe


def log_to_stderr(verbose: int) -> None:
    """Prints the messages of evaluand to stderr: from level INFO on if `verbose` is 1, from DEBUG on if it is more."""
    if not verbose:
        return
    import logging  # on use: every command would wait for it

    class Stderr(logging.Handler):
        """Writes to the stderr of the moment, which a progress display replaces."""

        def emit(self, record: logging.LogRecord) -> None:
            try:
                click.echo(safe(self.format(record)), file=sys.stderr)
            except Exception:
                self.handleError(record)

    logger = logging.getLogger("evaluand")
    logger.setLevel(logging.DEBUG if verbose > 1 else logging.INFO)
    if not any(handler.get_name() == "evaluand" for handler in logger.handlers):
        handler = Stderr()
        handler.set_name("evaluand")
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logger.addHandler(handler)
