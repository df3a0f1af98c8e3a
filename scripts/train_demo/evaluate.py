"""Evaluates the models on text from a seed that training never used.

    evaluate.py VOCABULARY.json TARGET.pt [--draft DRAFT.pt] [--per-skill N] [--wrong]

Prints the perplexity per model (over the tokens the model writes itself, except the first of a document), for each skill
how many greedy answers are the expected ones word for word, and for the draft the acceptance: accepted drafted tokens /
drafted tokens when it drafts up to four tokens at a time for the target's greedy answers.
"""

import argparse
import json
import math
import random

import torch
from torch.nn import functional

import chat
import corpus
import knowledge
import model as models
import skills
import stories
import tools
import world
from vocabulary import Vocabulary

SEED = 1_000_000
DEPTH = 4
MAX_ANSWER = 160  # tokens


def perplexity(model, vocabulary, n_rows=120, length=256):
    arrays = corpus.rows(vocabulary, random.Random(SEED), n_rows, length, 0)
    total = count = 0
    for i in range(0, n_rows, 20):
        tokens, documents = (torch.from_numpy(arrays[key][i:i + 20].astype("int64")) for key in ("tokens", "documents"))
        wanted = torch.from_numpy(arrays["learned"][i:i + 20])[:, 1:] & (documents[:, 1:] == documents[:, :-1])
        with torch.no_grad():
            logits = model(tokens[:, :-1], documents[:, :-1], wanted)
        total += functional.cross_entropy(logits, tokens[:, 1:][wanted], reduction="sum").item()
        count += wanted.sum().item()
    return math.exp(total / count)


def _thinking(r):
    question, thought, item = skills.steps(r)
    return f"{question} {r.choice(chat.THINK)}", f"<think>\n{thought}\n</think>\n\n{item.answer}"


def _question(kind):
    def make(r):
        item = kind(r)
        return item.question, item.answer
    return make


def _styled(make_style):
    def make(r):
        how, item = make_style(r), world.item(r)
        return chat.prompt(item.question, how.system), how.answer(item)
    return make


def _tool_call(r):
    given, question, call, _, _ = tools.use(r)
    return chat.prompt(question, tools.system_text(given)), call


def _tool_answer(r):
    given, question, call, returned, answer = tools.use(r)
    asked = chat.prompt(question, tools.system_text(given)) + call + "<|im_end|>\n"
    return asked + chat.prompt(tools.response_text(returned)), answer


def _memory(r):
    said, asked = skills.memory(r)
    return chat.prompt(said.question) + said.answer + "<|im_end|>\n" + chat.prompt(asked.question), asked.answer


def _one_word(r):
    item = world.item(r)
    return chat.prompt(item.question, r.choice(chat.ONE_WORD)), item.short


def _json_style(r):
    item = world.item(r)
    return chat.prompt(item.question, r.choice(chat.JSON)), tools.dumps({"answer": item.short})


SKILLS = {
    "lindale": _question(world.item), "general knowledge": _question(knowledge.item),
    "about itself": _question(knowledge.about_self), "greetings": _question(knowledge.greeting),
    "arithmetic": _question(skills.arithmetic), "counting and comparing": _question(skills.order),
    "letters": _question(skills.letters), "lists and repeating": _question(skills.lists),
    "reading": _question(skills.reading), "remembering": _memory, "thinking": _thinking,
    "role of the system prompt": _styled(chat.role_style), "one word": _one_word, "answer in JSON": _json_style,
    "objects and lists as JSON": tools.json_answer, "tool call": _tool_call, "answer after a tool": _tool_answer,
}


def greedy(model, vocabulary, prompt):
    """The tokens of the model's greedy answer."""
    ids = vocabulary.encode(prompt)
    start = len(ids)
    ends = {vocabulary.special["<|im_end|>"], vocabulary.special["<|endoftext|>"]}
    while len(ids) - start < MAX_ANSWER:
        last = torch.zeros(1, len(ids), dtype=torch.bool)
        last[0, -1] = True
        with torch.no_grad():
            ids.append(model(torch.tensor([ids]), None, last).argmax().item())
        if ids[-1] in ends:
            break
    return ids[start:]


def drafted(draft, vocabulary, prompt, answer):
    """(accepted, drafted) tokens for an answer of the target. As long as a draft is right, it has read exactly the answer,
    so its guesses at every position of the answer suffice."""
    ids = vocabulary.encode(prompt) + answer
    with torch.no_grad():
        guesses = draft(torch.tensor([ids[:-1]]))[0].argmax(-1).tolist()[-len(answer):]
    right = [guess == token for guess, token in zip(guesses, answer)]
    n_accepted = n_drafted = 0
    at = 1  # the target's own prompt step gives the first token
    while at < len(answer):
        ahead = right[at:at + DEPTH]
        run = ahead.index(False) if False in ahead else len(ahead)
        n_drafted += len(ahead)
        n_accepted += run
        at += run + 1
    return n_accepted, n_drafted


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("vocabulary")
    parser.add_argument("target")
    parser.add_argument("--draft")
    parser.add_argument("--per-skill", type=int, default=40)
    parser.add_argument("--wrong", action="store_true", help="print wrong answers")
    options = parser.parse_args()
    torch.set_num_threads(1)
    vocabulary = Vocabulary.load(options.vocabulary)
    target = models.load(options.target)
    draft = models.load(options.draft) if options.draft else None
    result = {"perplexity": {"target": round(perplexity(target, vocabulary), 3)}, "right": {}}
    if draft:
        result["perplexity"]["draft"] = round(perplexity(draft, vocabulary), 3)
    prompts = []
    for name, make in SKILLS.items():
        r = random.Random(SEED + 1)
        n_right = 0
        for _ in range(options.per_skill):
            asked, expected = make(r)
            prompt = asked if asked.startswith("<|im_start|>") else chat.prompt(asked)
            answer = greedy(target, vocabulary, prompt)
            prompts.append((prompt, answer))
            found = vocabulary.decode(answer).replace("<|im_end|>", "")
            n_right += found == expected
            if options.wrong and found != expected:
                print(f"{name}: {asked!r}: {found!r}, expected {expected!r}")
        result["right"][name] = f"{n_right}/{options.per_skill}"
    if draft:
        r = random.Random(SEED + 2)
        for _ in range(options.per_skill):
            prompt = chat.prompt(stories.request(r)[0])
            prompts.append((prompt, greedy(target, vocabulary, prompt)))
        counts = [drafted(draft, vocabulary, prompt, answer) for prompt, answer in prompts]
        n_accepted, n_drafted = (sum(column) for column in zip(*counts))
        result["acceptance"] = {"accepted": n_accepted, "drafted": n_drafted, "depth": DEPTH,
                                "rate": round(n_accepted / n_drafted, 3)}
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
