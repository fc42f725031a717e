"""The SDKs' `Task`: that of the core, whose subclasses may call an attribute of theirs `name`."""

from __future__ import annotations

from evaluand.run.task import Input, Output
from evaluand.run.task import Task as NativeTask


class Task(NativeTask[Input, Output]):
    """A task; see `evaluand.run.task.Task`."""

    @property
    def name(self) -> str:
        """What it is called in traces: its class, if it was not given a name."""
        return self.__dict__.get("name") or type(self).__name__

    @name.setter
    def name(self, name: str) -> None:
        self.__dict__["name"] = name
