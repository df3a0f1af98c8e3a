"""What every module of the grammar produces: a question with a full and a short answer. Also helpers for sentences."""

from typing import NamedTuple


class Item(NamedTuple):
    """One thing a user may say. `short` is the answer if one word is requested; "" if there is none."""

    question: str
    answer: str
    short: str


def pick(r, *options):
    """One of the options, with equal probability."""
    return options[r.randrange(len(options))]


def a(noun):
    """The noun with its article."""
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def capital(text):
    return text[:1].upper() + text[1:]


_SYLLABLES = ["ba", "do", "fi", "ka", "lu", "mo", "ni", "ra", "se", "to", "va", "ze", "lin", "mar", "pol", "tan", "wer"]


def invented_word(r):
    """An unseen word, so that the user's text has to be copied and cannot be memorized."""
    return "".join(r.choices(_SYLLABLES, k=r.randint(2, 3)))
