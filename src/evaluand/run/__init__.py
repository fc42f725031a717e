"""Step 1 of the path: run a task, the system under test, on the examples of a dataset.

`Runner` calls a `Task` and stores the responses as a `Run`; `tasks` holds the kinds of tasks. The decorator `task` is
exported by `evaluand`. The names are loaded on first use.
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.run.runner import Run as Run, Runner as Runner
    from evaluand.run.task import (
        Candidates as Candidates,
        FunctionTask as FunctionTask,
        Request as Request,
        Task as Task,
        as_task as as_task,
    )
    from evaluand.run.tasks.chat import ChatTask as ChatTask
    from evaluand.run.tasks.chunk import Chunk as Chunk
    from evaluand.run.tasks.conversation import FewShot as FewShot
    from evaluand.run.tasks.detect_language import DetectLanguage as DetectLanguage
    from evaluand.run.tasks.estimator import EstimatorTask as EstimatorTask
    from evaluand.run.tasks.instruct import Instruct as Instruct, Instruction as Instruction
    from evaluand.run.tasks.multiple_choice import MultipleChoice as MultipleChoice
    from evaluand.run.tasks.program import ProgramTask as ProgramTask
    from evaluand.run.tasks.question_answering import (
        CitedAnswer as CitedAnswer,
        DocumentQuestion as DocumentQuestion,
        QuestionAnswering as QuestionAnswering,
        RetrieverQuestionAnswering as RetrieverQuestionAnswering,
    )
    from evaluand.run.tasks.recorded import DoubtfulJoin as DoubtfulJoin, RecordedTask as RecordedTask
    from evaluand.run.tasks.service import LocalServiceTask as LocalServiceTask, ServiceTask as ServiceTask
    from evaluand.run.tasks.summary import Summary as Summary

_IF_CALLED = 'Experiment.from_file("experiment.yaml").run(), or Runner().run(task, dataset)'

__getattr__, __dir__ = lazy_names(__name__, if_called=_IF_CALLED)
