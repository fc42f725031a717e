"""Comparison of several runs: judges that see two responses, schedules, and the matches that they give.

comparison_scorers.py    what judges two responses to one example
schedule.py              which systems meet on which examples: fixed.py in advance, adaptive.py by the outcomes so far,
                         on the rows of course.py
pairing.py               who is presented first, and which judgement decides which match
matcher.py, matches.py   makes the matches, and the artifact in which they are stored
recorded.py              matches of runs that were judged elsewhere
battles.py               files of matches that others have judged; battle_rows.py reads one row of them
people.py                pairs for people to judge, and their answers as matches
response_style.py        the length and markup of a response
"""
