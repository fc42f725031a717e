"""Step 1: tasks (the system under test), the kinds of tasks, Runner and Run."""
