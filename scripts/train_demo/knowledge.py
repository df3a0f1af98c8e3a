"""What every child knows: days, months, opposites, animals, colours; manners; and what the model is."""

from items import Item, a, capital, pick

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December"]
OPPOSITES = [("hot", "cold"), ("big", "small"), ("day", "night"), ("up", "down"), ("fast", "slow"), ("happy", "sad"),
             ("old", "young"), ("open", "closed"), ("full", "empty"), ("wet", "dry"), ("light", "dark"),
             ("left", "right"), ("hard", "soft"), ("early", "late"), ("near", "far"), ("loud", "quiet")]
SOUNDS = {"dog": "woof", "cat": "meow", "cow": "moo", "duck": "quack", "sheep": "baa", "pig": "oink", "owl": "hoot",
          "frog": "ribbit", "bee": "buzz", "horse": "neigh", "hen": "cluck", "mouse": "squeak"}
LEGS = {"dog": "four", "cat": "four", "cow": "four", "duck": "two", "spider": "eight", "bee": "six", "ant": "six",
        "horse": "four", "hen": "two", "snake": "no", "fish": "no", "owl": "two"}
YOUNG = {"dog": "puppy", "cat": "kitten", "cow": "calf", "sheep": "lamb", "horse": "foal", "duck": "duckling",
         "hen": "chick", "pig": "piglet", "bear": "cub"}
COLOURS = {"the sky": "blue", "grass": "green", "snow": "white", "the sun": "yellow", "blood": "red", "coal": "black",
           "a banana": "yellow", "a carrot": "orange", "a cherry": "red", "milk": "white", "the sea": "blue",
           "a leaf": "green", "an elephant": "grey", "a flamingo": "pink"}
KINDS = {"animals": ["dog", "cat", "horse", "cow", "owl", "fox"], "colours": ["red", "blue", "green", "yellow"],
         "fruits": ["apple", "pear", "plum", "cherry", "banana"], "tools": ["hammer", "saw", "spade", "axe"],
         "vegetables": ["carrot", "onion", "potato", "bean"], "seasons": ["spring", "summer", "autumn", "winter"]}
FACTS = [
    (["How many days are in a week?", "How many days does a week have?"], "A week has seven days.", "seven"),
    (["How many months are in a year?", "How many months does a year have?"], "A year has twelve months.", "twelve"),
    (["How many hours are in a day?", "How many hours does a day have?"], "A day has 24 hours.", "24"),
    (["How many minutes are in an hour?", "How many minutes does an hour have?"], "An hour has 60 minutes.", "60"),
    (["What do bees make?", "What does a bee make?"], "Bees make honey.", "honey"),
    (["What do cows drink?", "What does a cow drink?"], "Cows drink water.", "water"),
    (["Where do fish live?", "Where does a fish live?"], "Fish live in water.", "water"),
    (["What do we need to breathe?", "What do people breathe?"], "People breathe air.", "air"),
    (["What is ice made of?", "What is ice?"], "Ice is frozen water.", "water"),
    (["What falls from the clouds?", "What comes from the clouds?"], "Rain falls from the clouds.", "rain"),
    (["When do we sleep?", "When do people sleep?"], "People sleep at night.", "night"),
    (["When does the sun rise?", "When can I see the sun rise?"], "The sun rises in the morning.", "morning"),
    (["What do you use to cut paper?", "How do I cut paper?"], "You cut paper with scissors.", "scissors"),
    (["What do we see with?", "What do people see with?"], "People see with their eyes.", "eyes"),
    (["What do we hear with?", "What do people hear with?"], "People hear with their ears.", "ears"),
    (["Which season is cold?", "Which is the coldest season?"], "Winter is the coldest season.", "winter"),
    (["Which season is hot?", "Which is the warmest season?"], "Summer is the warmest season.", "summer"),
    (["Where do books live?", "Where can I borrow a book?"], "You can borrow a book in a library.", "library"),
    (["What is bread made of?", "What do you need for bread?"], "Bread is made of flour and water.", "flour"),
    (["What shines at night?", "What do we see in the sky at night?"], "The moon and the stars shine at night.",
     "moon"),
]
UNKNOWN = ["the capital of France", "the president of Peru", "quantum physics", "the stock market",
           "the theory of music",
           "ancient Rome", "the speed of light", "football results", "the weather on Mars", "the history of China",
           "computer viruses", "the price of gold", "German grammar", "a famous film", "the Second World War",
           "black holes", "the human brain", "space travel", "organic chemistry", "the tax law"]
DO_NOT_KNOW = "I am too small a model to know that. Ask me about Lindale."


def _after(r):
    names, unit = pick(r, (DAYS, "day"), (MONTHS, "month"))
    i = r.randrange(len(names))
    if r.random() < 0.6:
        there = names[(i + 1) % len(names)]
        question = pick(r, f"What comes after {names[i]}?", f"Which {unit} comes after {names[i]}?",
                        f"Which {unit} follows {names[i]}?")
        return Item(question, f"{there} comes after {names[i]}.", there)
    there = names[(i - 1) % len(names)]
    question = pick(r, f"What comes before {names[i]}?", f"Which {unit} comes before {names[i]}?")
    return Item(question, f"{there} comes before {names[i]}.", there)


def _opposite(r):
    word, other = r.choice(OPPOSITES)
    if r.random() < 0.5:
        word, other = other, word
    question = pick(r, f"What is the opposite of {word}?", f"What is the opposite of \"{word}\"?",
                    f"Opposite of {word}?",
                    f"Tell me the opposite of {word}.")
    return Item(question, f"The opposite of {word} is {other}.", other)


def _animal(r):
    kind = r.randrange(3)
    if kind == 0:
        animal, sound = r.choice(list(SOUNDS.items()))
        question = pick(r, f"What does {a(animal)} say?", f"What sound does {a(animal)} make?",
                        f"Which sound does the {animal} make?")
        return Item(question, f"The {animal} says {sound}.", sound)
    if kind == 1:
        animal, legs = r.choice(list(LEGS.items()))
        question = pick(r, f"How many legs does {a(animal)} have?", f"How many legs has {a(animal)}?")
        return Item(question, f"{capital(a(animal))} has {legs} legs.", "none" if legs == "no" else legs)
    animal, young = r.choice(list(YOUNG.items()))
    question = pick(r, f"What is a young {animal} called?", f"What do you call a young {animal}?",
                    f"What is a baby {animal}?")
    return Item(question, f"A young {animal} is called {a(young)}.", young)


def _colour(r):
    thing, colour = r.choice(list(COLOURS.items()))
    question = pick(r, f"What colour is {thing}?", f"Which colour is {thing}?", f"What is the colour of {thing}?",
                    f"What color is {thing}?")
    return Item(question, f"{capital(thing)} is {colour}.", colour)


def _list(r):
    kind, members = r.choice(list(KINDS.items()))
    number, n = pick(r, ("two", 2), ("three", 3))
    question = pick(r, f"Name {number} {kind}.", f"Tell me {number} {kind}.", f"Can you name {number} {kind}?",
                    f"Give me {number} {kind}.")
    answer = ", ".join(members[:n])
    return Item(question, f"{capital(answer)}.", answer)


def _fact(r):
    questions, answer, short = r.choice(FACTS)
    return Item(r.choice(questions), answer, short)


def _unknown(r):
    thing = r.choice(UNKNOWN)
    question = pick(r, f"What is {thing}?", f"Tell me about {thing}.", f"What do you know about {thing}?",
                    f"Explain {thing}.", f"Can you explain {thing} to me?")
    return Item(question, DO_NOT_KNOW, "unknown")


def item(r):
    """A question of general knowledge, or one that the model says it cannot answer."""
    return r.choices([_after, _opposite, _animal, _colour, _list, _fact, _unknown], [5, 4, 5, 4, 3, 5, 3])[0](r)


GREETINGS = ["Hello!", "Hi!", "Hello", "hi", "Hey", "Hi there!", "Good day!", "hello", "Hey there!", "Hello there."]
THANKS = ["Thank you!", "Thanks!", "Thanks a lot.", "thank you", "thanks", "Thank you very much.",
          "That helps, thanks."]
GOODBYES = ["Goodbye!", "Bye!", "See you!", "bye", "Good night!", "See you tomorrow!", "I have to go now."]


def greeting(r):
    kind = r.randrange(6)
    if kind == 0:
        return Item(pick(r, "Good morning!", "good morning"), "Good morning! How can I help you?", "Morning")
    if kind == 1:
        return Item(pick(r, "Good evening!", "good evening"), "Good evening! How can I help you?", "Evening")
    if kind == 2:
        return Item(pick(r, "How are you?", "how are you", "How are you today?", "Hi, how are you?", "How do you do?",
                         "Hello, how are you?"), "I am fine, thank you. How are you?", "Fine")
    return Item(r.choice(GREETINGS), "Hello! How can I help you?", "Hello")


def thanks(r):
    return Item(r.choice(THANKS), "You are welcome!", "Welcome")


def goodbye(r):
    question = r.choice(GOODBYES)
    return Item(question, "Good night! Sleep well." if "night" in question else "Goodbye! Come back soon.", "Goodbye")


WHO = "I am a tiny language model that comes with infer, for trying things out."
_SELF = [
    (["Who are you?", "What are you?", "who are you", "what are you?", "Tell me about yourself.", "Introduce yourself.",
      "What is this?", "What kind of model are you?", "Are you a language model?"], WHO, "model"),
    (["Are you a human?", "Are you human?", "Are you a person?", "Are you real?", "Are you alive?"],
     "No. I am a tiny language model that comes with infer.", "no"),
    (["How big are you?", "How many parameters do you have?", "How large are you?", "What is your size?"],
     "I have about five million parameters. That is very small.", "tiny"),
    (["What can you do?", "What are you good at?", "How can you help me?", "What can I ask you?", "Help"],
     "I can chat a little, do small sums, tell short stories and talk about Lindale.", "chat"),
    (["Who made you?", "Who trained you?", "Who built you?", "Where do you come from?"],
     "The makers of infer trained me on text that a program wrote.", "infer"),
    (["Are you smart?", "Are you clever?", "Are you a good model?", "Can I trust your answers?"],
     "Not very. I am tiny and often wrong. Use a larger model for real work.", "no"),
    (["Which model should I use?", "How do I use a real model?", "Where do I get a better model?",
      "How do I run a larger model?", "I want a better model."],
     "Get a GGUF file of a larger model and start infer with -m and its name.", "larger"),
    (["What is infer?", "Tell me about infer.", "What does infer do?", "What is infer good for?"],
     "Infer is a program that runs language models from GGUF files.", "program"),
]
NAME_QUESTIONS = ["What is your name?", "what is your name", "What are you called?", "Tell me your name.",
                  "Do you have a name?", "How should I call you?"]
OWN_NAME = "Demo"


def about_self(r):
    """A question about the model itself; who it is and its name depend on the system prompt, see chat.py."""
    if r.random() < 0.15:
        return Item(r.choice(NAME_QUESTIONS), f"My name is {OWN_NAME}.", OWN_NAME)
    questions, answer, short = r.choice(_SELF)
    return Item(r.choice(questions), answer, short)


WHO_QUESTIONS = _SELF[0][0][:6]
