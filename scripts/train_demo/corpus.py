"""The training text as token rows.

    corpus.py VOCABULARY.json OUT.npz [--seed N] [--rows N] [--length N] [--long SHARE]
    corpus.py --show N         prints N documents and writes nothing

A row starts with a document and contains as many as fit; the last one is truncated. OUT.npz has `tokens`,
`documents` (which document of the row a token belongs to) and `learned` (whether the model should write that token), all
[rows, length + 1].
"""

import argparse
import random

import numpy

import chat
from vocabulary import Vocabulary


def rows(vocabulary, r, n_rows, length, long_share):
    """The arrays of OUT.npz."""
    shape = (n_rows, length + 1)
    tokens, documents = numpy.zeros(shape, numpy.int16), numpy.zeros(shape, numpy.int16)
    learned = numpy.zeros(shape, bool)
    for row in range(n_rows):
        filled, index = 0, 0
        while filled <= length:
            for text, own in chat.document(r, long=r.random() < long_share):
                ids = vocabulary.encode(text)[:length + 1 - filled]
                tokens[row, filled:filled + len(ids)] = ids
                documents[row, filled:filled + len(ids)] = index
                learned[row, filled:filled + len(ids)] = own
                filled += len(ids)
            index += 1
    return {"tokens": tokens, "documents": documents, "learned": learned}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("vocabulary", nargs="?")
    parser.add_argument("out", nargs="?")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--length", type=int, default=384)
    parser.add_argument("--long", type=float, default=0, help="fraction of documents with 8 or more questions")
    parser.add_argument("--show", type=int, help="print that many documents")
    options = parser.parse_args()
    r = random.Random(options.seed)
    if options.show:
        for _ in range(options.show):
            print(chat.text(chat.document(r)), end="\n\n")
        return
    arrays = rows(Vocabulary.load(options.vocabulary), r, options.rows, options.length, options.long)
    numpy.savez(options.out, **arrays)
    print(f"{options.out}: {options.rows} rows of {options.length} tokens, "
          f"{arrays['documents'].max(axis=1).mean():.1f} documents each, {arrays['learned'].mean():.0%} learned")


if __name__ == "__main__":
    main()
