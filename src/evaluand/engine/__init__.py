"""How calls are made: concurrency, processes, rate limits, timeouts, HTTP, and keyed work that resumes and is
reused.
"""
