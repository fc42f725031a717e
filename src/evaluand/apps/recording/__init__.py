"""Recordings: what an app did while it was used, stored as it happens, and judged then, afterwards or by others.

    App ── each call that has ended ──▶ Recording ── close ──▶ Dataset of inputs, Run of calls, Evaluation

A recording is an open artifact of a store. Each record is one line of its journal, written the moment the call has
ended, so a process that is killed loses none; each feedback has a separate lane in the journal, with the lines of an
evaluation. The mode says who judges, and when:

    none             nobody, until `evaluate` is called
    with_app         the app's own thread, before the call returns; another thread if the policy has a timeout
    with_app_thread  threads of the app's process
    deferred         other processes (`work`, `evaluand feedback work`), while the app records or afterwards

Design:

- A record is judged as it is read back from its line, whoever judges it. So all modes see the same, and so does an
  evaluation of the sealed run: there is one digest.
- A recording is sealed like every run and evaluation. The evaluation takes over what the lanes hold and judges what is
  missing, so it does not matter how far the judging has come.
- Judging must not disturb the app: an error of a feedback is a row, a feedback that hangs delays no call, and a
  record that finds the queue full stays in the journal.
- A slot belongs to one writer, which has claimed its block: threads, forks and other processes record at once, and the
  blocks that they do not use up leave gaps.

    recording/writer.py           a recording in progress
    recording/stored.py           a recording in a store, and how it is sealed
    recording/missing.py          records that have lost their lines
    recording/judge.py            judging records, one at a time
    recording/workers.py          judging in other processes
    recording/feedback_import.py  feedbacks in other processes
"""
