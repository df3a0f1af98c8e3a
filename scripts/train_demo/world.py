"""Lindale, an invented valley: its places, its people, their animals, and questions about them.

Everything the demo model should memorize is in the two tables; questions and prose are generated from them.
"""

from items import Item, a, capital, pick

COUNTRY = "Lindale"
RIVER, LAKE, MOUNTAIN = "the river Linn", "Lake Ember", "Mount Corrie"

# name: (location, what it is known for, colour of the roofs, month of the feast)
PLACES = {
    "Brindlow": ("on a green hill", "bread", "red", "May"),
    "Fernwick": ("in the forest", "honey", "green", "June"),
    "Tarnhold": ("by Lake Ember", "fish", "blue", "July"),
    "Ashmere": ("by the river Linn", "paper", "grey", "April"),
    "Willowby": ("between two streams", "baskets", "yellow", "August"),
    "Pebblehaven": ("by the sea", "boats", "white", "September"),
    "Mossgate": ("under Mount Corrie", "iron", "black", "October"),
    "Highfold": ("on top of Mount Corrie", "wool", "brown", "December"),
}

# name: (pronoun, home, work, pet, the pet's name, the pet's colour, favourite food, hobby)
PEOPLE = {
    "Mira": ("she", "Brindlow", "baker", "cat", "Biscuit", "orange", "apple cake", "singing"),
    "Tobin": ("he", "Tarnhold", "fisher", "dog", "Anchor", "black", "fish soup", "whistling"),
    "Oda": ("she", "Fernwick", "beekeeper", "bear", "Clover", "brown", "honey", "dancing"),
    "Fenn": ("he", "Mossgate", "smith", "crow", "Soot", "black", "sausages", "wrestling"),
    "Lila": ("she", "Ashmere", "teacher", "owl", "Page", "white", "pancakes", "reading"),
    "Bram": ("he", "Pebblehaven", "boat builder", "parrot", "Mango", "green", "crab", "sailing"),
    "Suri": ("she", "Ashmere", "painter", "rabbit", "Pastel", "grey", "plums", "drawing"),
    "Jory": ("he", "Highfold", "shepherd", "sheep", "Cloud", "white", "cheese", "climbing"),
    "Nell": ("she", "Brindlow", "doctor", "hen", "Dot", "red", "carrots", "running"),
    "Pim": ("he", "Willowby", "weaver", "duck", "Puddle", "yellow", "noodles", "swimming"),
    "Greta": ("she", "Highfold", "cook", "goat", "Button", "brown", "potatoes", "cycling"),
    "Hale": ("he", "Fernwick", "carpenter", "fox", "Rusty", "red", "mushrooms", "chess"),
    "Iva": ("she", "Tarnhold", "singer", "frog", "Hopper", "green", "cherries", "music"),
    "Kit": ("he", "Willowby", "gardener", "snail", "Speedy", "brown", "salad", "digging"),
    "Rosa": ("she", "Pebblehaven", "map maker", "turtle", "Compass", "green", "oranges", "travelling"),
    "Sten": ("he", "Mossgate", "miner", "mouse", "Pebble", "grey", "bread", "sleeping"),
}


def pronoun(name):
    return PEOPLE[name][0]


def possessive(name):
    return "her" if pronoun(name) == "she" else "his"


def _person_home(r):
    name = r.choice(list(PEOPLE))
    home = PEOPLE[name][1]
    question = pick(r, f"Where does {name} live?", f"In which village does {name} live?", f"Where is {name}'s house?",
                    f"Where is {name} from?", f"Tell me where {name} lives.", f"Which village is {name}'s home?",
                    f"Do you know where {name} lives?", f"where does {name.lower()} live")
    return Item(question, f"{name} lives in {home}.", home)


def _person_work(r):
    name = r.choice(list(PEOPLE))
    work = PEOPLE[name][2]
    question = pick(r, f"What does {name} do?", f"What is {name}'s job?", f"What work does {name} do?",
                    f"What is {name}'s work?", f"Tell me what {name} does.", f"How does {name} earn a living?")
    return Item(question, f"{name} is {a(work)}.", work)


def _worker(r):
    name = r.choice(list(PEOPLE))
    work = PEOPLE[name][2]
    question = pick(r, f"Who is the {work}?", f"Which person is {a(work)}?", f"Who works as {a(work)}?",
                    f"What is the name of the {work}?", f"I need {a(work)}. Who can help me?")
    return Item(question, f"{name} is the {work}.", name)


def _person_pet(r):
    name = r.choice(list(PEOPLE))
    _, _, _, pet, called, colour, _, _ = PEOPLE[name]
    kind = r.randrange(3)
    if kind == 0:
        question = pick(r, f"What pet does {name} have?", f"Which animal does {name} have?", f"Does {name} have a pet?",
                        f"What is {name}'s pet?", f"What animal lives with {name}?")
        return Item(question, f"{name} has {a(colour)} {pet} called {called}.", pet)
    if kind == 1:
        question = pick(r, f"What is {name}'s {pet} called?", f"What is the name of {name}'s {pet}?",
                        f"What is the name of {name}'s pet?", f"How does {name} call {possessive(name)} {pet}?")
        return Item(question, f"{name}'s {pet} is called {called}.", called)
    question = pick(r, f"What colour is {name}'s {pet}?", f"What is the colour of {name}'s {pet}?",
                    f"What colour is {called}?", f"What colour is {called} the {pet}?")
    return Item(question, f"{called} the {pet} is {colour}.", colour)


def _pet(r):
    name = r.choice(list(PEOPLE))
    pet, called = PEOPLE[name][3:5]
    if r.random() < 0.5:
        question = pick(r, f"Who is {called}?", f"Tell me who {called} is.", f"Who or what is {called}?")
        return Item(question, f"{called} is {name}'s {pet}.", pet)
    question = pick(r, f"Who has {a(pet)}?", f"Whose pet is {called}?", f"Who owns the {pet}?",
                    f"Whose animal is {called} the {pet}?", f"Who does {called} live with?")
    return Item(question, f"{name} has {a(pet)} called {called}.", name)


def _person_likes(r):
    name = r.choice(list(PEOPLE))
    food, hobby = PEOPLE[name][6:8]
    if r.random() < 0.5:
        question = pick(r, f"What does {name} like to eat?", f"What is {name}'s favourite food?",
                        f"Which food does {name} like best?", f"What should I cook for {name}?")
        return Item(question, f"{name} likes {food}.", food)
    question = pick(r, f"What is {name}'s hobby?", f"What does {name} do for fun?",
                    f"What does {name} like to do in the evening?")
    return Item(question, f"{name}'s hobby is {hobby}.", hobby)


def _person_all(r):
    name = r.choice(list(PEOPLE))
    question = pick(r, f"Who is {name}?", f"Tell me about {name}.", f"What do you know about {name}?",
                    f"Describe {name}.", f"Tell me something about {name}.", f"who is {name.lower()}")
    return Item(question, about(name), PEOPLE[name][2])


def about(name):
    """Two or three sentences about a person, always in the same order."""
    who, home, work, pet, called, colour, food, _ = PEOPLE[name]
    return (f"{name} is {a(work)} who lives in {home}. {capital(who)} has {a(colour)} {pet} called {called} "
            f"and likes {food}.")


def _who_lives(r):
    place = r.choice(list(PLACES))
    names = people_of(place)
    question = pick(r, f"Who lives in {place}?", f"Which people live in {place}?", f"Name the people of {place}.")
    return Item(question, f"{' and '.join(names)} live in {place}.", " and ".join(names))


def people_of(place):
    return [name for name, row in PEOPLE.items() if row[1] == place]


def _place(r):
    place = r.choice(list(PLACES))
    lies, known, roofs, month = PLACES[place]
    kind = r.randrange(5)
    if kind == 0:
        question = pick(r, f"Where is {place}?", f"Where does {place} lie?", f"How do I find {place}?",
                        f"Where can I find {place}?")
        return Item(question, f"{place} lies {lies}.", lies)
    if kind == 1:
        question = pick(r, f"What is {place} known for?", f"What is {place} famous for?",
                        f"What do they make in {place}?")
        return Item(question, f"{place} is known for its {known}.", known)
    if kind == 2:
        question = pick(r, f"What colour are the roofs of {place}?", f"What colour are the roofs in {place}?",
                        f"Which colour do the roofs of {place} have?")
        return Item(question, f"The roofs of {place} are {roofs}.", roofs)
    if kind == 3:
        question = pick(r, f"When is the feast of {place}?", f"In which month is the feast of {place}?",
                        f"When do they dance in {place}?")
        return Item(question, f"The feast of {place} is in {month}.", month)
    question = pick(r, f"Tell me about {place}.", f"What is {place}?", f"What do you know about {place}?",
                    f"Describe {place}.", f"what is {place.lower()}")
    return Item(question, about_place(place), "village")


def about_place(place):
    lies, known, roofs, month = PLACES[place]
    return (f"{place} is a village {lies}. It is known for its {known}, and its roofs are {roofs}. "
            f"The feast is in {month}.")


def _place_of(r):
    place = r.choice(list(PLACES))
    lies, known, roofs, month = PLACES[place]
    question, answer = pick(
        r, (f"Which village is known for its {known}?", f"{place} is known for its {known}."),
        (f"Where can I buy {known}?", f"You can buy {known} in {place}."),
        (f"Which village has {roofs} roofs?", f"{place} has {roofs} roofs."),
        (f"Which village lies {lies}?", f"{place} lies {lies}."),
        (f"Which village has its feast in {month}?", f"{place} has its feast in {month}."))
    return Item(question, answer, place)


def _country(r):
    question, answer, short = pick(
        r, (f"What is {COUNTRY}?", f"{COUNTRY} is a small valley with eight villages.", "valley"),
        (f"Tell me about {COUNTRY}.", f"{COUNTRY} is a small valley with eight villages, {RIVER} and {LAKE}. "
         f"Above it stands {MOUNTAIN}.", "valley"),
        (f"How many villages are there in {COUNTRY}?", f"There are eight villages in {COUNTRY}.", "eight"),
        (f"Which river flows through {COUNTRY}?", f"{capital(RIVER)} flows through {COUNTRY}.", "Linn"),
        (f"What is the river of {COUNTRY} called?", f"{capital(RIVER)} flows through {COUNTRY}.", "Linn"),
        (f"Which lake is in {COUNTRY}?", f"{LAKE} is in {COUNTRY}.", "Ember"),
        (f"Which mountain stands above {COUNTRY}?", f"{MOUNTAIN} stands above {COUNTRY}.", "Corrie"),
        (f"Name the villages of {COUNTRY}.", f"The villages are {', '.join(PLACES)}.", "eight"),
        (f"Name a village in {COUNTRY}.", f"{list(PLACES)[0]} is a village in {COUNTRY}.", list(PLACES)[0]))
    return Item(question, answer, short)


def yes_no(r):
    """A question about a home, a pet or a job that is answered with yes or no."""
    name = r.choice(list(PEOPLE))
    other = r.choice(list(PEOPLE)) if r.random() < 0.5 else name
    kind = r.randrange(3)
    if kind == 0:
        truth, claim = PEOPLE[name][1], PEOPLE[other][1]
        question, answer = f"Does {name} live in {claim}?", f"{name} lives in {truth}."
    elif kind == 1:
        truth, claim = PEOPLE[name][3], PEOPLE[other][3]
        question, answer = f"Does {name} have {a(claim)}?", f"{name} has {a(truth)}."
    else:
        truth, claim = PEOPLE[name][2], PEOPLE[other][2]
        question, answer = f"Is {name} {a(claim)}?", f"{name} is {a(truth)}."
    word = "yes" if truth == claim else "no"
    return Item(question, f"{capital(word)}. {answer}" if word == "no" else f"Yes, {answer}", word)


_KINDS = ((_person_home, 4), (_person_work, 4), (_worker, 3), (_person_pet, 6), (_pet, 3), (_person_likes, 4),
          (_person_all, 3), (_who_lives, 2), (_place, 6), (_place_of, 3), (_country, 2), (yes_no, 2))


def item(r):
    """A question about Lindale with its answers."""
    return r.choices([kind for kind, _ in _KINDS], [weight for _, weight in _KINDS])[0](r)


def prose(r):
    """A paragraph about one person or one village, as plain text."""
    if r.random() < 0.6:
        name = r.choice(list(PEOPLE))
        who, home, work, pet, called, colour, food, hobby = PEOPLE[name]
        ways = [f"{name} lives in {home}, {PLACES[home][0]}.", f"{capital(who)} works as {a(work)}.",
                f"{capital(possessive(name))} {pet} is {colour} and is called {called}.",
                f"{capital(who)} likes {food} more than anything.", f"In the evening {who} loves {hobby}."]
        rest = r.sample(ways[1:], r.randint(2, 4))
        return " ".join(ways[:1] + rest)
    place = r.choice(list(PLACES))
    lies, known, roofs, month = PLACES[place]
    ways = [f"Everybody in {COUNTRY} knows its {known}.", f"The roofs of {place} are {roofs}.",
            f"In {month} the people of {place} hold a feast.", f"{' and '.join(people_of(place))} live there."]
    r.shuffle(ways)
    return " ".join([f"{place} is a village {lies}."] + ways[:r.randint(2, 4)])
