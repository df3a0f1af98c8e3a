"""Small skills: sums, counting and comparing, letters of words, lists, repeating, and reading a sentence."""

from items import Item, a, capital, invented_word, pick

WORDS = ["cat", "dog", "sun", "map", "red", "box", "cup", "pen", "hat", "bed", "fox", "owl", "bee", "sea", "tree",
         "moon",
         "star", "fish", "bird", "book", "door", "lamp", "rain", "snow", "wind", "milk", "cake", "ship", "king", "frog",
         "house", "apple", "green", "water", "bread", "stone", "light", "horse", "river", "cloud"]
NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
THINGS = ["apples", "books", "coins", "eggs", "balls", "plums", "stones", "shells"]
NAMES = ["Tom", "Anna", "Ben", "Sue", "Max", "Eva", "Leo", "Mia", "Sam", "Ida", "Paul", "Lucy", "Alice", "Bob", "Carl",
         "Clara", "David", "Emil", "Erik", "Fred", "George", "Hans", "Helen", "Henry", "Ingrid", "Jane", "John",
         "Julia",
         "Karl", "Kate", "Laura", "Linda", "Maria", "Mark", "Mary", "Nina", "Oscar", "Peter", "Rita", "Sara", "Simon",
         "Theo", "Tim", "Ulla", "Victor", "Wendy"]


def some_name(r):
    """Mostly a name from the list; sometimes one that has to be read."""
    return capital(invented_word(r)) if r.random() < 0.2 else r.choice(NAMES)


def _addends(r):
    """Mostly small numbers, which can be memorized; some up to 99."""
    if r.random() < 0.75:
        return r.randint(0, 12), r.randint(0, 12)
    first = r.randint(10, 89)
    return first, r.randint(1, 99 - first)


def _sum_question(r, x, sign, word, y):
    return pick(r, f"What is {x} {sign} {y}?", f"What is {x} {word} {y}?", f"{x} {sign} {y}", f"{x} {sign} {y} = ?",
                f"How much is {x} {sign} {y}?", f"How much is {x} {word} {y}?", f"Calculate {x} {sign} {y}.",
                f"{x}{sign}{y}", f"{x}{sign}{y}=")


def arithmetic(r):
    """A sum, a difference, a small product, or a story about apples."""
    kind = r.choices(["add", "subtract", "multiply", "story"], [5, 3, 3, 3])[0]
    if kind == "add":
        x, y = _addends(r)
        return Item(_sum_question(r, x, "+", "plus", y), f"{x} + {y} = {x + y}.", str(x + y))
    if kind == "subtract":
        y, z = _addends(r)
        x = y + z
        return Item(_sum_question(r, x, "-", "minus", y), f"{x} - {y} = {z}.", str(z))
    if kind == "multiply":
        x, y = r.randint(0, 10), r.randint(0, 10)
        return Item(_sum_question(r, x, "*", "times", y), f"{x} * {y} = {x * y}.", str(x * y))
    name, thing = some_name(r), r.choice(THINGS)
    x, y = r.randint(2, 12), r.randint(1, 9)
    if r.random() < 0.5:
        question = pick(r, f"{name} has {x} {thing} and gets {y} more. How many {thing} does {name} have now?",
                        f"{name} has {x} {thing}. A friend gives {name} {y} more. How many {thing} does {name} have?")
        return Item(question, f"{name} has {x} + {y} = {x + y} {thing}.", str(x + y))
    x = max(x, y)
    question = pick(r, f"{name} has {x} {thing} and loses {y}. How many {thing} are left?",
                    f"{name} has {x} {thing} and gives away {y}. How many {thing} are left?")
    return Item(question, f"{x} - {y} = {x - y} {thing} are left.", str(x - y))


def steps(r):
    """Three numbers: (question, thought, answer). The thought is one sum after the other."""
    x, y, z = r.randint(1, 12), r.randint(1, 10), r.randint(1, 9)
    first = x + y
    if r.random() < 0.5 and first >= z:
        sign, word, result = "-", "minus", first - z
    else:
        sign, word, result = "+", "plus", first + z
    question = pick(r, f"What is {x} + {y} {sign} {z}?", f"What is {x} plus {y} {word} {z}?",
                    f"How much is {x} + {y} {sign} {z}?", f"Calculate {x} + {y} {sign} {z}.")
    thought = f"{x} + {y} = {first}. {first} {sign} {z} = {result}."
    return question, thought, Item(question, f"The answer is {result}.", str(result))


def order(r):
    """Counting and comparing."""
    kind = r.randrange(4)
    if kind == 0:
        x = r.randint(0, 40)
        if r.random() < 0.6:
            question = pick(r, f"What number comes after {x}?", f"Which number comes after {x}?",
                            f"What comes after {x}?")
            return Item(question, f"{x + 1} comes after {x}.", str(x + 1))
        question = pick(r, f"What number comes before {x + 1}?", f"Which number comes before {x + 1}?")
        return Item(question, f"{x} comes before {x + 1}.", str(x))
    if kind == 1:
        start = r.choice([1, 1, 1, 2, 3, 4, 5, 6])
        end = start + r.randint(2, 9)
        numbers = ", ".join(map(str, range(start, end + 1)))
        options = [f"Count from {start} to {end}.", f"Please count from {start} to {end}."]
        if start == 1:
            options += [f"Count to {end}.", f"Can you count to {end}?"]
        return Item(r.choice(options), f"{numbers}.", numbers)
    if kind == 2:
        start = r.randint(3, 10)
        numbers = ", ".join(map(str, range(start, 0, -1)))
        return Item(pick(r, f"Count down from {start}.", f"Count backwards from {start}."), f"{numbers}.", numbers)
    x, y = r.sample(range(1, 60), 2)
    larger = r.random() < 0.6
    result = max(x, y) if larger else min(x, y)
    kind_of = "larger" if larger else "smaller"
    question = pick(r, f"Which number is {kind_of}, {x} or {y}?", f"Which is {kind_of}, {x} or {y}?",
                    f"What is {kind_of}, {x} or {y}?")
    return Item(question, f"{result} is {kind_of}.", str(result))


def letters(r):
    """One word taken apart."""
    word = r.choice(WORDS)
    kind = r.randrange(6)
    if kind == 0:
        question = pick(r, f"Reverse the word {word}.", f"Write {word} backwards.", f"Spell {word} backwards.",
                        f"What is {word} backwards?", f"Reverse \"{word}\".")
        return Item(question, word[::-1], word[::-1])
    if kind == 1:
        question = pick(r, f"Spell the word {word}.", f"Spell {word}.", f"How do you spell {word}?",
                        f"How is {word} spelled?")
        return Item(question, "-".join(word), "-".join(word))
    if kind == 2:
        question = pick(r, f"Write {word} in capital letters.", f"Write the word {word} in capital letters.",
                        f"Make {word} uppercase.", f"Uppercase: {word}", f"Write {word} in uppercase.")
        return Item(question, word.upper(), word.upper())
    if kind == 3:
        question = pick(r, f"How many letters does {word} have?", f"How many letters are in the word {word}?",
                        f"How many letters are in {word}?", f"Count the letters of {word}.")
        return Item(question, f"The word {word} has {NUMBERS[len(word)]} letters.", NUMBERS[len(word)])
    if kind == 4:
        question = pick(r, f"What is the first letter of {word}?", f"Which letter does {word} start with?")
        return Item(question, f"The first letter of {word} is {word[0]}.", word[0])
    question = pick(r, f"What is the last letter of {word}?", f"Which letter does {word} end with?")
    return Item(question, f"The last letter of {word} is {word[-1]}.", word[-1])


def lists(r):
    """Three to five words reversed, counted, or one of them found; or a phrase repeated."""
    words = r.sample(WORDS, r.randint(3, 5))
    row = " ".join(words) if r.random() < 0.5 else ", ".join(words)
    kind = r.randrange(6)
    if kind == 0:
        back = row.split(", ")[::-1] if ", " in row else row.split(" ")[::-1]
        answer = (", " if ", " in row else " ").join(back)
        return Item(pick(r, f"Reverse this list: {row}", f"Turn this list round: {row}",
                         f"Write these words in reverse order: {row}"), answer, answer)
    if kind == 1:
        question = pick(r, f"How many words are in this list: {row}", f"Count these words: {row}")
        return Item(question, f"There are {NUMBERS[len(words)]} words.", NUMBERS[len(words)])
    if kind == 2:
        question = pick(r, f"What is the first word of this list: {row}", f"What is the first word here: {row}")
        return Item(question, f"The first word is {words[0]}.", words[0])
    if kind == 3:
        question = pick(r, f"What is the last word of this list: {row}", f"What is the last word here: {row}")
        return Item(question, f"The last word is {words[-1]}.", words[-1])
    phrase = " ".join(invented_word(r) if r.random() < 0.3 else r.choice(WORDS) for _ in range(r.randint(1, 4)))
    question = pick(r, f"Say: {phrase}", f"Repeat after me: {phrase}", f"Repeat: {phrase}", f"Say \"{phrase}\".",
                    f"Repeat \"{phrase}\".")
    return Item(question, phrase, phrase)


_OWNED = ["ball", "kite", "boat", "cup", "hat", "lamp", "drum", "key", "bell", "coat", "ring", "cake"]
_COLOURS = ["red", "blue", "green", "yellow", "white", "black", "brown", "pink"]
_ROOMS = ["kitchen", "garden", "attic", "cellar", "barn", "library", "school", "market"]


def reading(r):
    """Two or three sentences, and a question that one of them answers."""
    names = r.sample(NAMES, r.randint(2, 3))
    kind = r.randrange(2)
    one = r.randrange(len(names))
    if kind == 0:
        owned = [(name, thing, r.choice(_COLOURS)) for name, thing in zip(names, r.sample(_OWNED, len(names)))]
        text = " ".join(f"{name} has {a(colour)} {thing}." for name, thing, colour in owned)
        name, thing, colour = owned[one]
        question, answer, short = pick(
            r, (f"What does {name} have?", f"{name} has {a(colour)} {thing}.", thing),
            (f"Who has the {thing}?", f"{name} has the {thing}.", name),
            (f"What colour is the {thing}?", f"The {thing} is {colour}.", colour))
    else:
        rooms = r.sample(_ROOMS, len(names))
        text = " ".join(f"{name} is in the {room}." for name, room in zip(names, rooms))
        question, answer, short = pick(
            r, (f"Where is {names[one]}?", f"{names[one]} is in the {rooms[one]}.", rooms[one]),
            (f"Who is in the {rooms[one]}?", f"{names[one]} is in the {rooms[one]}.", names[one]))
    return Item(f"{text} {question}", answer, short)


def memory(r):
    """Two turns or more apart: (what the user says first, the answer to it, the question later, its answer)."""
    kind = r.randrange(3)
    if kind == 0:
        name = some_name(r)
        return (Item(pick(r, f"My name is {name}.", f"I am {name}.", f"Hi, I am {name}.", f"Hello, my name is {name}."),
                     f"Nice to meet you, {name}!", name),
                Item(pick(r, "What is my name?", "Who am I?", "Do you remember my name?"), f"Your name is {name}.",
                     name))
    if kind == 1:
        colour = r.choice(_COLOURS)
        return (Item(pick(r, f"My favourite colour is {colour}.", f"I like {colour} best."),
                     f"{capital(colour)} is a lovely colour.", colour),
                Item(pick(r, "What is my favourite colour?", "Which colour do I like best?"),
                     f"Your favourite colour is {colour}.", colour))
    thing, room = r.choice(_OWNED), r.choice(_ROOMS)
    return (Item(pick(r, f"My {thing} is in the {room}.", f"Remember: my {thing} is in the {room}."),
                 f"I will remember that your {thing} is in the {room}.", "Yes"),
            Item(pick(r, f"Where is my {thing}?", f"Where did I leave my {thing}?"), f"Your {thing} is in the {room}.",
                 room))
