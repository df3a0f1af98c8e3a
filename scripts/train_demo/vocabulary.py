"""A byte-level BPE vocabulary: training, encoding, decoding.

Text is split with the pattern that GGUF calls "qwen2": words with the one character before them, single digits, punctuation,
spaces. Ids: the 256 bytes, then the merged pairs in the order they were found, then the special tokens.

    vocabulary.py OUT.json      trains on the corpus of seed 1 and writes {"merges": [[left, right], ...]} of ids
"""

import collections
import heapq
import json
import random
import sys

import chat

PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
           r"|\s+(?!\S)|\s+")
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>"]
VISIBLE = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"]
SPECIAL = CONTROL + VISIBLE
N_TOKENS = 2048
N_SAMPLE_BYTES = 2_000_000


def _pieces():
    import regex  # from Debian's python3-regex; needed only for training and encoding
    return regex.compile(PATTERN).findall, regex.compile("(" + "|".join(map(regex.escape, SPECIAL)) + ")").split


class Vocabulary:
    """Tokens by id as bytes; encodes with a cache of whole pieces. Not thread-safe."""

    def __init__(self, merges):
        self.merges = [tuple(pair) for pair in merges]
        self.tokens = [bytes([byte]) for byte in range(256)]
        for left, right in self.merges:
            self.tokens.append(self.tokens[left] + self.tokens[right])
        self.special = {text: len(self.tokens) + i for i, text in enumerate(SPECIAL)}
        self.tokens += [text.encode() for text in SPECIAL]
        self._rank = {pair: 256 + i for i, pair in enumerate(self.merges)}
        self._cache = {}
        self._find, self._split = _pieces()

    @staticmethod
    def load(path):
        with open(path, encoding="utf-8") as file:
            return Vocabulary(json.load(file)["merges"])

    def __len__(self):
        return len(self.tokens)

    def _encode_piece(self, piece):
        ids = list(piece.encode())
        while len(ids) > 1:
            rank, at = min((self._rank.get(pair, len(self.tokens)), i) for i, pair in enumerate(zip(ids, ids[1:])))
            if rank == len(self.tokens):
                break
            ids[at:at + 2] = [rank]
        return ids

    def encode(self, text):
        """Ids of the text; special tokens in it are parsed."""
        ids = []
        for part in self._split(text):
            if part in self.special:
                ids.append(self.special[part])
                continue
            for piece in self._find(part):
                if piece not in self._cache:
                    self._cache[piece] = self._encode_piece(piece)
                ids += self._cache[piece]
        return ids

    def decode(self, ids):
        return b"".join(self.tokens[i] for i in ids).decode("utf-8", "replace")


def train(counts, n_merges):
    """counts: {piece: how often}. Merges the most frequent pair first; ties go to the lower ids."""
    words = [(list(piece.encode()), n) for piece, n in sorted(counts.items())]
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for index, (ids, n) in enumerate(words):
        for pair in zip(ids, ids[1:]):
            pairs[pair] += n
            where[pair].add(index)
    heap = [(-n, pair) for pair, n in pairs.items()]
    heapq.heapify(heap)
    merges = []
    while len(merges) < n_merges:
        n, best = heapq.heappop(heap)
        if -n != pairs[best]:  # a stale entry: the count has changed since
            if pairs[best] > 0:
                heapq.heappush(heap, (-pairs[best], best))
            continue
        new_id = 256 + len(merges)
        merges.append(best)
        changed = set()
        for index in where.pop(best):
            ids, count = words[index]
            for pair in zip(ids, ids[1:]):
                pairs[pair] -= count
            merged, i = [], 0
            while i < len(ids):
                if i + 1 < len(ids) and (ids[i], ids[i + 1]) == best:
                    merged.append(new_id)
                    i += 2
                else:
                    merged.append(ids[i])
                    i += 1
            words[index] = (merged, count)
            for pair in zip(merged, merged[1:]):
                pairs[pair] += count
                where[pair].add(index)
                changed.add(pair)
        for pair in changed:
            heapq.heappush(heap, (-pairs[pair], pair))
    return merges


def main(path):
    find, split = _pieces()
    r = random.Random(1)
    counts, n_bytes = collections.Counter(), 0
    while n_bytes < N_SAMPLE_BYTES:
        text = chat.text(chat.document(r))
        n_bytes += len(text)
        for part in split(text):
            if part not in SPECIAL:
                counts.update(find(part))
    # Bytes that answers may need, but the corpus lacks, are available as single-byte tokens.
    merges = train(counts, N_TOKENS - 256 - len(SPECIAL))
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"merges": merges}, file)
    vocabulary = Vocabulary(merges)
    n_tokens = sum(len(vocabulary.encode(piece)) * n for piece, n in counts.items())
    print(f"{len(vocabulary)} tokens; {n_bytes} bytes of text, {n_bytes / n_tokens:.2f} bytes per token")


if __name__ == "__main__":
    main(sys.argv[1])
