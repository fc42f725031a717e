"""What calls cost, with the names of TruLens."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Cost:
    """What was asked and used."""

    n_requests: int = 0
    n_successful_requests: int = 0
    n_completion_requests: int = 0
    n_tokens: int = 0
    n_prompt_tokens: int = 0
    n_completion_tokens: int = 0
    cost: float = 0.0
    cost_currency: str = "USD"
