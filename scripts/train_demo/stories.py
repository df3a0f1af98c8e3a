"""Short stories and verses from a grammar: a hero, a place, a wish or a loss, a helper, an end."""

from items import a, capital, pick

# kind: pronoun for names of that kind
HEROES = {
    "fox": ["Finn", "Ruby"], "mouse": ["Milo", "Tess"], "rabbit": ["Robin", "Daisy"], "bear": ["Bruno", "Berta"],
    "cat": ["Felix", "Luna"], "dog": ["Rex", "Bella"], "dragon": ["Drago", "Flora"], "owl": ["Otto", "Olga"],
    "girl": ["Lotte", "Emma"], "boy": ["Peter", "Jack"], "robot": ["Bolt", "Zippy"], "duck": ["Donny", "Dora"],
}
_HE = {"Finn", "Milo", "Robin", "Bruno", "Felix", "Rex", "Drago", "Otto", "Peter", "Jack", "Bolt", "Donny"}
PLACES = ["in a small house by the river", "in a deep forest", "on a green hill", "near the sea",
          "under an old oak tree",
          "in a quiet village"]
THINGS = ["ball", "hat", "kite", "lamp", "bell", "book", "boat", "drum"]
COLOURS = ["red", "blue", "green", "golden", "silver"]
HELPERS = ["a friendly bird", "an old turtle", "a kind woman", "a little bee", "a wise crow", "a brave hedgehog"]
HIDDEN = ["under a stone", "behind the door", "in the tall grass", "on the roof", "in a hollow tree", "under the bed"]
FOODS = ["apples", "honey", "soup", "bread", "cake", "berries"]
WISHES = [("fly", "built two wings of paper", "jumped from the hill"),
          ("swim", "went to the pond", "kicked with both feet"),
          ("sing", "went to the wood every day", "sang one note after the other"),
          ("paint", "found some colours", "painted the whole wall"),
          ("dance", "put on new shoes", "turned round and round")]


class Hero:
    def __init__(self, r, kind=None):
        self.kind = kind or r.choice(list(HEROES))
        self.name = r.choice(HEROES[self.kind])
        self.he = "he" if self.name in _HE else "she"
        self.his = "his" if self.name in _HE else "her"
        self.him = "him" if self.name in _HE else "her"


def _opening(r, h):
    size = pick(r, "little", "young", "small")
    return pick(r, f"Once upon a time there was a {size} {h.kind} named {h.name}. {h.name} lived {r.choice(PLACES)}.",
                f"There was once a {size} {h.kind} named {h.name} who lived {r.choice(PLACES)}.")


def _ending(r, h):
    return pick(r, f"{h.name} was very happy.", f"{capital(h.he)} went home and slept well.",
                f"And {h.name} laughed all the way home.", "And from that day on they were friends.")


def _loss(r, h):
    thing, colour, helper = r.choice(THINGS), r.choice(COLOURS), r.choice(HELPERS)
    return [f"{h.name} had a {colour} {thing}.", f"One day the {thing} was gone.",
            pick(r, f"{h.name} looked everywhere, but {h.he} could not find it.",
                 f"{capital(h.he)} looked in the house and in the garden, but the {thing} was not there."),
            pick(r, f"Then {h.he} met {helper}.", f"Then {helper} came along."),
            f"\"I saw your {thing},\" said {_the(helper)}. \"It is {r.choice(HIDDEN)}.\"",
            f"And there it was! \"Thank you,\" said {h.name}."]


def _the(helper):
    return "the " + helper.split(" ", 1)[1]


def _wish(r, h):
    can, first, then = r.choice(WISHES)
    return [f"{h.name} wanted to {can}.",
            f"\"You are too small,\" said {h.his} {pick(r, 'brother', 'sister', 'uncle')}.",
            f"But {h.name} did not give up.", f"{capital(h.he)} {first} and {then}.",
            pick(r, f"After seven days {h.he} could {can}.", f"On the third day {h.he} could {can}."),
            f"\"Look at me!\" cried {h.name}. \"I can {can}!\""]


def _hungry(r, h):
    food, helper = r.choice(FOODS), r.choice(HELPERS)
    return [f"One winter morning {h.name} was hungry.", f"{capital(h.he)} went out to look for {food}.",
            f"On the way {h.he} met {helper}.", f"\"I am hungry too,\" said {_the(helper)}.",
            f"So they went together, and soon they found {food}.", f"They shared the {food} and ate until it was dark."]


def _storm(r, h):
    helper = r.choice(HELPERS)
    return [f"One night there was a great storm.", f"The wind blew and the rain fell, and {h.name} was afraid.",
            f"Then {h.he} heard a knock at the door.", f"It was {helper}, wet and cold.",
            f"\"Come in,\" said {h.name}, and made a warm fire.", f"They told stories until the storm was over."]


def _night(r, h):
    return [f"{h.name} could not sleep.",
            f"{capital(h.he)} looked out of the window and saw the {pick(r, 'moon', 'stars')}.",
            f"\"Are you awake too?\" asked {h.name}.", f"Nobody answered, but the light was soft and kind.",
            f"{h.name} closed {h.his} eyes and counted to ten."]


_PLOTS = (_loss, _wish, _hungry, _storm, _night)


def story(r, kind=None):
    """A story of six to nine sentences; `kind` is the hero's; None: any."""
    hero = Hero(r, kind)
    return " ".join([_opening(r, hero), *r.choice(_PLOTS)(r, hero), _ending(r, hero)])


_TALK = [
    ("the weather", ["It is warm today.", "It is raining again.", "Look, it is snowing!"],
     ["Let us go to the lake.", "Then we stay in and make tea.", "Come, we will build a snowman!"]),
    ("supper", ["I am hungry.", "What is for supper?", "Something smells good."],
     ["There is soup on the table.", "There is bread and cheese.", "That is the cake in the oven."]),
    ("the evening", ["What shall we do tonight?", "It is getting dark.", "I am tired."],
     ["Let us tell stories.", "Then light the lamp.", "Then go to bed and sleep well."]),
]


def dialogue(r):
    """Two people of the stories talk in lines `Name: sentence`."""
    one, other = Hero(r), Hero(r)
    lines = []
    for _ in range(r.randint(2, 3)):
        _, says, answers = r.choice(_TALK)
        i = r.randrange(len(says))
        lines += [f"{one.name}: {says[i]}", f"{other.name}: {answers[i]}"]
    lines += [f"{one.name}: Good night, {other.name}.", f"{other.name}: Good night, {one.name}."]
    return "\n".join(lines)


_VERSES = {
    "rain": ["Rain is falling on the town,", "softly, softly, coming down.", "Every flower lifts its head,",
             "drinking in its garden bed."],
    "the moon": ["Silver moon so round and bright,", "watch the valley through the night.",
                 "When the morning sun will rise,",
                 "go to sleep and close your eyes."],
    "a cat": ["In the window sits a cat,", "warm and lazy, grey and fat.", "When a mouse comes running by,",
              "she will only blink an eye."],
    "the sea": ["Waves are rolling to the shore,", "one and two and three and four.",
                "Little boats with sails of white,",
                "come back home before the night."],
    "winter": ["Snow is lying on the hill,", "all the fields are white and still.", "By the fire, safe and warm,",
               "we are waiting out the storm."],
}
VERSE_SUBJECTS = list(_VERSES)


def verse(subject):
    """Four lines; always the same for one subject."""
    return "\n".join(_VERSES[subject])


def request(r):
    """(what a user asks for, the text): a story or a verse."""
    kind = r.choice(list(HEROES))
    draw = r.random()
    if draw < 0.25:
        subject = r.choice(VERSE_SUBJECTS)
        return pick(r, f"Write a poem about {subject}.", f"Write a short poem about {subject}.",
                    f"A poem about {subject}, please.",
                    f"Do you know a poem about {subject}?"), verse(subject)
    if draw < 0.75:
        question = pick(r, f"Tell me a story about {a(kind)}.", f"Tell me a short story about {a(kind)}.",
                        f"Write a story about {a(kind)}.", f"I want to hear a story about {a(kind)}.")
        return question, story(r, kind)
    return pick(r, "Tell me a story.", "Tell me a short story.", "Write a short story.",
                "I want to hear a story."), story(r)


def prose(r):
    """Plain text: a story, a dialogue or a verse."""
    draw = r.random()
    if draw < 0.75:
        return story(r)
    return dialogue(r) if draw < 0.9 else verse(r.choice(VERSE_SUBJECTS))
