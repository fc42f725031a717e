"""The budget in an experiment file."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from evaluand.core.errors import SpecError
from evaluand.engine.budget import Budget


class BudgetSpec(BaseModel):
    """The most that all requests of the experiment together may cost."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    cost: float = Field(gt=0, description="the amount")
    currency: str = Field(min_length=1, description="such as USD or EUR")

    @model_validator(mode="before")
    @classmethod
    def _read_text(cls, value: Any) -> Any:
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            return value
        try:
            budget = Budget.parse(str(value))
        except SpecError:
            message = "is {text}; write an amount and its currency, such as 5 USD"
            raise PydanticCustomError("budget", message, {"text": value}) from None
        return {"cost": budget.cost, "currency": budget.currency}
