"""Conversations in ChatML, built from the items of the other modules, with system prompts that are obeyed.

A document is a list of segments (text, learned): the model's own text is learned in full, a user's or a
system prompt's only a little (train.py's weight), since the model has to answer such turns and not to invent them.
"""

import knowledge
import skills
import stories
import tools
import world
from items import Item, pick

END = "<|endoftext|>"
MODEL_NAMES = ["Zed", "Ava", "Kiki", "Momo", "Bob", "Luz", "Nova", "Pip", "Rolf", "Yara", "Gus", "Tara"]
GENERIC = ["You are a helpful assistant.", "You are a friendly assistant.", "You are a chat bot.",
           "Be helpful and kind.",
           "You help people."]
ROLES = {
    "pirate": ("Arr!", "Yo ho!", ["Talk like a pirate.", "Answer like a pirate."]),
    "robot": ("Beep!", "Boop!", ["Talk like a robot.", "Answer like a robot."]),
    "butler": ("Certainly.", "At your service.", ["Talk like a butler.", "Answer like a butler."]),
    "wizard": ("By my beard!", "Abracadabra!", ["Talk like a wizard.", "Answer like a wizard."]),
}
ONE_WORD = ["Answer in one word.", "Answer with one word.", "Use one word only.", "Reply with a single word."]
JSON = ["Answer in JSON.", "Answer with JSON only.", "Always answer as JSON."]
NICE_DAY = ["End every answer with: Have a nice day!", "Always wish the user a nice day."]
THINK = ["Think before you answer.", "Think first.", "Think step by step."]


class Style:
    """A style that a system prompt asks for: its text, and how it transforms an item's answer."""

    def __init__(self, system="", answer=lambda item: item.answer, name=None, role=None):
        self.system = system
        self._answer = answer
        self._name = name
        self._role = role

    def answer(self, item):
        if self._name and item.question in knowledge.NAME_QUESTIONS:
            item = Item(item.question, f"My name is {self._name}.", self._name)
        elif item.question in knowledge.WHO_QUESTIONS and (self._name or self._role):
            who = f"I am {self._name} the {self._role}." if self._name and self._role else \
                f"I am {self._name}." if self._name else f"I am a {self._role}."
            item = Item(item.question, who, self._role or self._name)
        return self._answer(item)


def role_style(r):
    role = r.choice(list(ROLES))
    first, last, prompts = ROLES[role]
    name = r.choice(MODEL_NAMES) if r.random() < 0.35 else None
    if name:
        system = pick(r, f"You are {name}, a {role}.", f"Your name is {name}. You are a {role}.",
                      f"You are a {role} named {name}.")
    else:
        system = pick(r, f"You are a {role}.", r.choice(prompts), f"You are a {role}. {r.choice(prompts)}")
    return Style(system, lambda item: f"{first} {item.answer} {last}", name, role)


def _named_style(r):
    name = r.choice(MODEL_NAMES)
    return Style(pick(r, f"Your name is {name}.", f"You are {name}.", f"You are {name}, a helpful assistant.",
                      f"You are a helpful assistant named {name}."), name=name)


def style(r):
    """Half of the conversations have no system prompt."""
    draw = r.random()
    if draw < 0.5:
        return Style()
    if draw < 0.62:
        return Style(r.choice(GENERIC))
    if draw < 0.77:
        return role_style(r)
    if draw < 0.84:
        return _named_style(r)
    if draw < 0.92:
        return Style(r.choice(ONE_WORD), lambda item: item.short)
    if draw < 0.96:
        return Style(r.choice(JSON), lambda item: tools.dumps({"answer": item.short}))
    return Style(r.choice(NICE_DAY), lambda item: f"{item.answer} Have a nice day!")


_ITEMS = ((world.item, 26), (knowledge.item, 14), (knowledge.about_self, 7), (knowledge.greeting, 4),
          (knowledge.thanks, 2), (knowledge.goodbye, 2), (skills.arithmetic, 17), (skills.order, 6),
          (skills.letters, 9),
          (skills.lists, 7), (skills.reading, 6))


def _item(r):
    return r.choices([kind for kind, _ in _ITEMS], [weight for _, weight in _ITEMS])[0](r)


def _turn(role, text):
    """Segments of one turn; the assistant's text is learned, including the end of its turn."""
    if role == "assistant":
        return [("<|im_start|>assistant\n", False), (f"{text}<|im_end|>", True), ("\n", False)]
    return [(f"<|im_start|>{role}\n{text}<|im_end|>\n", False)]


def _start(system):
    return _turn("system", system) if system else []


def prompt(question, system=""):
    """The text of a conversation with one question, up to the start of the answer."""
    return "".join(text for text, _ in _start(system) + _turn("user", question)) + "<|im_start|>assistant\n"


def _ask(r, how):
    """One turn each about one item."""
    item = _item(r)
    if r.random() < 0.05 and item.short:
        return _turn("user", f"{item.question} {r.choice(ONE_WORD)}") + _turn("assistant", item.short)
    asked = item.question.lower().rstrip("?.!") if r.random() < 0.06 else item.question
    return _turn("user", asked) + _turn("assistant", how.answer(item))


def questions(r, n_turns):
    """n_turns questions, all answered in the style of one system prompt."""
    how = style(r)
    segments = _start(how.system)
    for _ in range(n_turns):
        segments += _ask(r, how)
    return segments


def remembering(r, n_between):
    """A fact the user gives about himself, n_between other questions, and a question that needs the fact."""
    how = style(r)
    said, asked = skills.memory(r)
    segments = _start(how.system) + _turn("user", said.question) + _turn("assistant", how.answer(said))
    for _ in range(n_between):
        segments += _ask(r, how)
    return segments + _turn("user", asked.question) + _turn("assistant", how.answer(asked))


def thinking(r):
    """Sums of three numbers: with intermediate sums if thinking is requested, otherwise only the answer."""
    question, thought, item = skills.steps(r)
    way = r.randrange(4)
    answer = f"<think>\n{thought}\n</think>\n\n{item.answer}"
    if way == 0:
        return _start(r.choice(THINK)) + _turn("user", question) + _turn("assistant", answer)
    if way < 3:
        return _turn("user", f"{question} {r.choice(THINK)}") + _turn("assistant", answer)
    return _turn("user", question) + _turn("assistant", f"{thought} {item.answer}")


def tool_use(r):
    """A question that needs a tool; the call; what it returned; the answer; sometimes a question that needs none."""
    given, question, call, returned, answer = tools.use(r)
    system = r.choice(GENERIC) if r.random() < 0.3 else ""
    segments = _turn("system", tools.system_text(given, system))
    if r.random() < 0.2:
        segments += _turn("user", (item := world.item(r)).question) + _turn("assistant", item.answer)
    segments += _turn("user", question) + _turn("assistant", call)
    if r.random() < 0.8:
        segments += _turn("user", tools.response_text(returned)) + _turn("assistant", answer)
        if r.random() < 0.3:
            item = pick(r, knowledge.thanks, world.item, knowledge.item)(r)
            segments += _turn("user", item.question) + _turn("assistant", item.answer)
    return segments


def writing(r):
    """A story or a verse on request, or something as JSON."""
    system = r.choice(GENERIC) if r.random() < 0.2 else ""
    question, answer = stories.request(r) if r.random() < 0.55 else tools.json_answer(r)
    segments = _start(system) + _turn("user", question) + _turn("assistant", answer)
    if r.random() < 0.3:
        item = pick(r, knowledge.thanks, knowledge.goodbye, world.item)(r)
        segments += _turn("user", item.question) + _turn("assistant", item.answer)
    return segments


def conversation(r, long=False):
    """One conversation of any kind; a long one has 8 to 20 questions."""
    if long:
        n_turns = r.randint(8, 20)
        return questions(r, n_turns) if r.random() < 0.7 else remembering(r, n_turns)
    kind = r.choices([questions, remembering, thinking, tool_use, writing], [60, 6, 5, 11, 16])[0]
    if kind is questions:
        return questions(r, r.choices([1, 2, 3, 4], [3, 3, 3, 2])[0])
    if kind is remembering:
        return remembering(r, r.randint(0, 2))
    return kind(r)


def document(r, long=False):
    """A conversation, or a piece of plain text; ends with the end-of-text token."""
    draw = r.random()
    if draw < 0.14 and not long:
        segments = [(stories.prose(r) if draw < 0.10 else world.prose(r), True)]
    else:
        segments = conversation(r, long)
        if segments[-1] == ("\n", False):
            segments = segments[:-1]
    return segments + [(END, True)]


def text(segments):
    return "".join(part for part, _ in segments)
