"""Comparison of several runs by judges that see two responses: schedules, matches, and ratings of systems.

schedule.py              which systems meet on which examples, in advance or by the outcomes so far
matcher.py, matches.py   makes the matches, and the artifact in which they are stored, with keys that several sets share
judging.py               who is presented first, what a judge sees and says, and which judgement decides which match
battles.py               files of matches that others have judged; battle_rows.py reads one row of them
people.py                pairs for people to judge, and matches of runs that they or others have judged elsewhere
labelled_sets.py         who judged matches, how often several judges agree, and labelled sets from matches and files
response_style.py        the length and markup of a response
ratings/                 ratings of systems from matches
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.matches.battles import read_battles as read_battles
    from evaluand.matches.labelled_sets import (
        agreement as agreement,
        read_labelled_file as read_labelled_file,
        read_labelled_matches as read_labelled_matches,
    )
    from evaluand.matches.matcher import Matcher as Matcher
    from evaluand.matches.matches import Matches as Matches
    from evaluand.matches.people import (
        RecordedBattles as RecordedBattles,
        match_by_people as match_by_people,
        pairs_to_judge as pairs_to_judge,
        read_judged as read_judged,
    )
    from evaluand.matches.ratings.method import RatingMethod as RatingMethod
    from evaluand.matches.ratings.rating import Ratings as Ratings, rate as rate
    from evaluand.matches.ratings.rating_gates import check_rating_gates as check_rating_gates
    from evaluand.matches.schedule import (
        AgainstBaseline as AgainstBaseline,
        AllPairs as AllPairs,
        InformationGain as InformationGain,
        Schedule as Schedule,
        Swiss as Swiss,
    )

__getattr__, __dir__ = lazy_names(__name__)
