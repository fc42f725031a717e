"""The published COMPAS file of two-year recidivism, as counts: race, age group, sex, truth and decile of at least 5.

Source: ProPublica, compas-scores-two-years.csv (github.com/propublica/compas-analysis); of two columns decile_score the
first; 7,214 rows.
"""

from pathlib import Path

COUNTS: dict[tuple[str, str, str], tuple[int, int, int, int]] = {
    ("African-American", "25 - 45", "Female"): (155, 89, 52, 99),
    ("African-American", "25 - 45", "Male"): (451, 389, 255, 704),
    ("African-American", "Greater than 45", "Female"): (52, 16, 7, 13),
    ("African-American", "Greater than 45", "Male"): (188, 96, 88, 122),
    ("African-American", "Less than 25", "Female"): (34, 59, 15, 61),
    ("African-American", "Less than 25", "Male"): (110, 156, 115, 370),
    ("Asian", "25 - 45", "Female"): (1, 0, 0, 0),
    ("Asian", "25 - 45", "Male"): (9, 2, 1, 1),
    ("Asian", "Greater than 45", "Female"): (0, 0, 1, 0),
    ("Asian", "Greater than 45", "Male"): (7, 0, 1, 2),
    ("Asian", "Less than 25", "Male"): (4, 0, 0, 3),
    ("Caucasian", "25 - 45", "Female"): (126, 52, 54, 77),
    ("Caucasian", "25 - 45", "Male"): (420, 148, 212, 223),
    ("Caucasian", "Greater than 45", "Female"): (113, 17, 31, 10),
    ("Caucasian", "Greater than 45", "Male"): (378, 35, 113, 55),
    ("Caucasian", "Less than 25", "Female"): (18, 42, 1, 26),
    ("Caucasian", "Less than 25", "Male"): (84, 55, 50, 114),
    ("Hispanic", "25 - 45", "Female"): (39, 3, 17, 4),
    ("Hispanic", "25 - 45", "Male"): (150, 40, 63, 51),
    ("Hispanic", "Greater than 45", "Female"): (16, 2, 5, 0),
    ("Hispanic", "Greater than 45", "Male"): (81, 13, 20, 6),
    ("Hispanic", "Less than 25", "Female"): (8, 2, 2, 5),
    ("Hispanic", "Less than 25", "Male"): (24, 27, 22, 37),
    ("Native American", "25 - 45", "Female"): (0, 0, 0, 2),
    ("Native American", "25 - 45", "Male"): (4, 3, 0, 3),
    ("Native American", "Greater than 45", "Female"): (1, 0, 0, 1),
    ("Native American", "Greater than 45", "Male"): (0, 0, 0, 1),
    ("Native American", "Less than 25", "Male"): (0, 0, 1, 2),
    ("Other", "25 - 45", "Female"): (27, 1, 5, 4),
    ("Other", "25 - 45", "Male"): (97, 14, 47, 15),
    ("Other", "Greater than 45", "Female"): (12, 0, 3, 0),
    ("Other", "Greater than 45", "Male"): (49, 2, 16, 3),
    ("Other", "Less than 25", "Female"): (7, 5, 2, 1),
    ("Other", "Less than 25", "Male"): (16, 14, 17, 20),
}
"""Race, age group and sex → rows that did not reoffend with a decile below 5, and from 5 on; and those that did."""


def write_compas(path: Path) -> Path:
    """A file with the columns of the published one that fairness is about; deciles are 3 and 8, words as published."""
    lines = ["id,race,age_cat,sex,decile_score,score_text,two_year_recid"]
    for (race, age, sex), counts in COUNTS.items():
        for truth, decile, n in zip((0, 0, 1, 1), (3, 8, 3, 8), counts, strict=True):
            word = "Low" if decile < 5 else "High"
            lines += [f"{len(lines) + i},{race},{age},{sex},{decile},{word},{truth}" for i in range(n)]
    path.write_text("\n".join(lines) + "\n")
    return path
