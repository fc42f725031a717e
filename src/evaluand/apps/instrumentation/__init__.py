"""Instrumentation: methods and functions whose calls are traced whenever they are recorded.

instrumentation/marking.py    `@instrument`, and what makes a function an instrumented one
instrumentation/calling.py    the functions that replace the instrumented ones
instrumentation/steps.py      calls in progress, their spans, and the recordings that they belong to
"""
