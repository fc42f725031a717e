"""Characters that are not seen where a text is shown, although programs read them."""

from typing import Final

UNSEEN: Final = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Default_Ignorable_Code_Point, as the inside of a class of a regular expression.

Source: https://www.unicode.org/reports/tr44/#Default_Ignorable_Code_Point
"""
