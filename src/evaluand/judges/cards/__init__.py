"""The quality of a judge, measured on a set labelled by people, and stored as a card.

labelled set ──▶ measures ──▶ JudgeCard ──▶ standing: what a mean by this judge is worth
"""
