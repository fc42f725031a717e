"""What tests read of a journal."""

from evaluand.store.journal import WorkLog


def lines_of(log: WorkLog) -> list[bytes]:
    """The lines of all finished units, in the order of their slots."""
    return [log.line(slot) for slot in range(log.slots) if log.is_done(slot)]
