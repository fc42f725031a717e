"""The SDKs' `Task`: the native task, whose subclasses may have an attribute `name`."""

from __future__ import annotations

from evaluand.run.task import Input, Output, Task as NativeTask


class Task(NativeTask[Input, Output]):
    """A task; see `evaluand.run.task.Task`."""

    @property
    def name(self) -> str:
        """The name in traces; by default that of its class."""
        return self.__dict__.get("name") or type(self).__name__

    @name.setter
    def name(self, name: str) -> None:
        self.__dict__["name"] = name
