"""What every part of the grammar makes: a question with a full and a short answer; and small helpers for sentences."""

from typing import NamedTuple


class Item(NamedTuple):
    """One thing a user may say. `short` is what remains of the answer when one word is asked for; "" when none does."""

    question: str
    answer: str
    short: str


def pick(r, *options):
    """One of the options, each as likely."""
    return options[r.randrange(len(options))]


def a(noun):
    """The noun with its article."""
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def capital(text):
    return text[:1].upper() + text[1:]


_SYLLABLES = ["ba", "do", "fi", "ka", "lu", "mo", "ni", "ra", "se", "to", "va", "ze", "lin", "mar", "pol", "tan", "wer"]


def invented_word(r):
    """A word that nobody has seen before, so that what a user says has to be copied and cannot be known by heart."""
    return "".join(r.choices(_SYLLABLES, k=r.randint(2, 3)))
