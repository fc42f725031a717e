"""Messages that quote long texts of somebody else."""

from __future__ import annotations

import pytest

from evaluand.core.errors import DataError, Fault, SpecError


def test_a_message_that_can_be_read_stays_as_it_is() -> None:
    message = "x" * 3999
    assert str(SpecError(message)) == message


def test_the_middle_of_a_long_line_is_left_out() -> None:
    message = str(SpecError(f"gate {'x' * 9000}: at 9001: found nothing", python="use a Gate"))
    assert message.startswith("gate xxx")
    assert "x [… 8,129 characters …] x" in message
    assert message.endswith("x: at 9001: found nothing; use a Gate")


@pytest.mark.parametrize("character", ["x", "é", "\ud800"])
def test_what_is_left_out_of_many_lines_is_counted(character: str) -> None:
    lines = [f"{n}: {character * 1000}" for n in range(50)]
    spec, data = str(SpecError("\n".join(lines))), str(DataError([Fault("", line) for line in lines]))
    for message, noun in ((spec, "lines"), (data, "faults")):
        *shown, last = message.split("\n")
        assert len(message.encode("utf-8", "surrogatepass")) <= 4096
        assert last == f"… and {50 - len(shown)} more {noun}"
        assert shown[0].startswith("0: ")


def test_a_credential_that_is_cut_in_a_long_message_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "hunter2-correct-horse-battery-staple-0123456789"
    monkeypatch.setenv("MY_API_KEY", secret)
    for before in range(400, 460):
        shown = str(DataError("x" * before + f" {secret} " + "y" * 6000 + f" {secret} " + "z" * before))
        assert "hunter2" not in shown
        assert "0123456789" not in shown


def test_what_to_do_stands_at_the_end_of_a_long_message() -> None:
    error = SpecError("\n".join("x" * 200 for _ in range(40)), python="pass x=1 instead", command="give --x")
    assert str(error).endswith("more lines; pass x=1 instead")
    assert error.for_commands.endswith("more lines; give --x")
