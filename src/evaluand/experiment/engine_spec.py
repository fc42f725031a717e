"""The engine in an experiment file."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from evaluand.engine.engines.choice import EngineKind


class EngineSpec(BaseModel):
    """Where calls are made: the name of an engine, or a mapping."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    kind: EngineKind = Field(
        "local", description="`local`: threads and coroutines; `processes` of this machine; `ray`: workers of a cluster"
    )
    workers: int | None = Field(None, ge=1, description="processes or workers; by default one for each CPU")
    address: str | None = Field(None, min_length=1, description="of a Ray cluster; by default one is started here")

    @model_validator(mode="before")
    @classmethod
    def _read_name(cls, value: Any) -> Any:
        return {"kind": value} if isinstance(value, str) else value
