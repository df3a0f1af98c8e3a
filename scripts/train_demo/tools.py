"""Tools in system prompts, calls of them, what they returned, and answers as JSON.

The format is fixed: a call is `<tool_call>\n{"name": ..., "arguments": {...}}\n</tool_call>`, what it returned comes
back in a turn of the user between <tool_response> and </tool_response>. The model's chat template writes the same text.
"""

import json

import world
from items import pick
from skills import WORDS, some_name

TOOLS_INTRO = "You may call a tool. The tools are:\n<tools>"
TOOLS_END = ("</tools>\nTo call one, answer with:\n<tool_call>\n"
             "{\"name\": <name>, \"arguments\": <arguments as JSON>}\n</tool_call>")

CITIES = list(world.PLACES) + ["Paris", "London", "Berlin", "Rome", "Tokyo", "Madrid"]
SONGS = ["Silver Moon", "Green Hills", "The Old Mill", "Morning Rain", "River Song"]
ROOMS = ["kitchen", "bedroom", "hall", "garden", "bathroom"]
SUBJECTS = ["bread", "bees", "boats", "owls", "stars", "trains", "apples", "castles"]
SKIES = ["sunny", "rainy", "cloudy", "windy", "snowy", "foggy"]
TEXTS = ["I am late", "good night", "dinner is ready", "see you soon", "happy birthday"]


def describe(name, description, **parameters):
    """A tool as OpenAI's interface describes it; parameters: name = type."""
    properties = {key: {"type": kind} for key, kind in parameters.items()}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": {
        "type": "object", "properties": properties, "required": list(parameters)}}}


def _weather(r):
    city, sky, degrees = r.choice(CITIES), r.choice(SKIES), r.randint(2, 29)
    key = pick(r, "city", "location", "place")
    tool = describe(pick(r, "get_weather", "weather", "get_current_weather"),
                    pick(r, "Get the weather of a place", "The current weather", "Get the current weather"),
                    **{key: "string"})
    question = pick(r, f"What is the weather in {city}?", f"How is the weather in {city}?", f"Weather in {city}?",
                    f"What is the weather like in {city}?", f"Tell me the weather in {city}.")
    return tool, question, {key: city}, {"sky": sky, "degrees": degrees}, f"It is {sky} in {city}, {degrees} degrees."


def _time(r):
    city, hour, minute = r.choice(CITIES), r.randint(0, 23), r.choice([0, 15, 30, 45])
    key = pick(r, "city", "location", "place")
    tool = describe(pick(r, "get_time", "clock"), pick(r, "Get the time of a place", "The time in a city"),
                    **{key: "string"})
    question = pick(r, f"What time is it in {city}?", f"Tell me the time in {city}.", f"How late is it in {city}?")
    time = f"{hour}:{minute:02}"
    return tool, question, {key: city}, {"time": time}, f"It is {time} in {city}."


def _add(r):
    x, y = r.randint(100, 999), r.randint(100, 999)
    tool = describe(pick(r, "add", "calculator", "add_numbers"), pick(r, "Add two numbers", "The sum of two numbers"),
                 a="integer", b="integer")
    question = pick(r, f"What is {x} + {y}?", f"Add {x} and {y}.", f"How much is {x} plus {y}?")
    return tool, question, {"a": x, "b": y}, {"result": x + y}, f"The result is {x + y}."


def _song(r):
    song = r.choice(SONGS)
    key = pick(r, "title", "song")
    tool = describe(pick(r, "play_song", "play_music"), pick(r, "Play a song", "Play music"), **{key: "string"})
    question = pick(r, f"Play {song}.", f"Please play {song}.", f"I want to hear {song}.")
    return tool, question, {key: song}, {"status": "playing"}, f"Now playing {song}."


def _light(r):
    room, state = r.choice(ROOMS), pick(r, "on", "off")
    tool = describe(pick(r, "set_light", "switch_light"),
                    pick(r, "Switch a light on or off", "Set the light of a room"),
                 room="string", state="string")
    question = pick(r, f"Turn {state} the light in the {room}.", f"Switch the {room} light {state}.",
                    f"Please turn the light in the {room} {state}.")
    return tool, question, {"room": room, "state": state}, {"status": "done"}, f"The light in the {room} is {state}."


def _timer(r):
    minutes = r.randint(2, 30)
    tool = describe(pick(r, "set_timer", "timer"), pick(r, "Set a timer", "Start a timer"), minutes="integer")
    question = pick(r, f"Set a timer for {minutes} minutes.", f"Wake me in {minutes} minutes.",
                    f"Start a timer of {minutes} minutes.")
    return tool, question, {"minutes": minutes}, {"status": "started"}, f"The timer is set to {minutes} minutes."


def _search(r):
    subject, count = r.choice(SUBJECTS), r.randint(2, 9)
    tool = describe(pick(r, "search", "find_books"), pick(r, "Search the library", "Find books"), query="string")
    question = pick(r, f"Find books about {subject}.", f"Search for books about {subject}.",
                    f"Are there books about {subject}?")
    return tool, question, {"query": subject}, {"found": count}, f"I found {count} books about {subject}."


def _message(r):
    name, text = some_name(r), r.choice(TEXTS)
    tool = describe(pick(r, "send_message", "send_text"), pick(r, "Send a message", "Send a text to somebody"),
                 to="string", text="string")
    question = pick(r, f"Tell {name}: {text}.", f"Send {name} the message: {text}.", f"Write to {name}: {text}.")
    return tool, question, {"to": name, "text": text}, {"status": "sent"}, f"I sent the message to {name}."


_KINDS = (_weather, _weather, _time, _add, _song, _light, _timer, _search, _message)


def dumps(value):
    return json.dumps(value, ensure_ascii=False)


def system_text(tools, system=""):
    """The text of the system turn if tools are given."""
    lines = "\n".join(dumps(tool) for tool in tools)
    return f"{system + chr(10) + chr(10) if system else ''}{TOOLS_INTRO}\n{lines}\n{TOOLS_END}"


def call_text(name, arguments):
    return f"<tool_call>\n{dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def response_text(content):
    return f"<tool_response>\n{content}\n</tool_response>"


def use(r):
    """(tools, question, text of the call, what the tool returned, the answer after it)."""
    tool, question, arguments, returned, answer = r.choice(_KINDS)(r)
    tools = [tool]
    names = {tool["function"]["name"]}
    for _ in range(r.choice([0, 0, 1, 2])):
        other = r.choice(_KINDS)(r)[0]
        if other["function"]["name"] not in names and not _rivals(other, tool):
            names.add(other["function"]["name"])
            tools.append(other)
    r.shuffle(tools)
    returned_text = dumps(returned)
    return tools, question, call_text(tool["function"]["name"], arguments), returned_text, answer


def _rivals(one, other):
    """Whether two tools are the same under different names."""
    return any(all(set(tool["function"]["name"].split("_")) & words for tool in (one, other)) for words in
               ({"weather"}, {"time", "clock"}, {"add", "calculator"}, {"song", "music"}, {"light"}, {"timer"},
                {"search", "books"}, {"send"}))


def json_answer(r):
    """(what a user asks for, a JSON object)."""
    kind = r.randrange(4)
    if kind == 0:
        name = r.choice(list(world.PEOPLE))
        _, home, work, pet, _, _, food, _ = world.PEOPLE[name]
        values = {"name": name, "home": home, "job": work, "pet": pet, "food": food}
        chosen = ["name"] + r.sample(["home", "job", "pet", "food"], r.randint(1, 3))
        fields = f"{', '.join(chosen[:-1])} and {chosen[-1]}"
        question = pick(r, f"Describe {name} as JSON with {fields}.", f"Give me {name} as JSON with {fields}.",
                        f"Write {name} as JSON with {fields}.")
        return question, dumps({key: values[key] for key in chosen})
    if kind == 1:
        place = r.choice(list(world.PLACES))
        _, known, roofs, month = world.PLACES[place]
        values = {"name": place, "product": known, "roofs": roofs, "feast": month}
        chosen = ["name"] + r.sample(["product", "roofs", "feast"], r.randint(1, 2))
        fields = f"{', '.join(chosen[:-1])} and {chosen[-1]}"
        question = pick(r, f"Describe {place} as JSON with {fields}.", f"Give me {place} as JSON with {fields}.")
        return question, dumps({key: values[key] for key in chosen})
    if kind == 2:
        name, age, colour = some_name(r), r.randint(3, 60), pick(r, "red", "blue", "green", "yellow", "black")
        question = pick(r, f"{name} is {age} years old and likes {colour}. Write this as JSON.",
                        f"Write as JSON: {name} is {age} years old and likes {colour}.")
        return question, dumps({"name": name, "age": age, "likes": colour})
    words = r.sample(WORDS, r.randint(2, 4))
    question = pick(r, f"Write these words as a JSON list: {', '.join(words)}",
                    f"Make a JSON list of: {', '.join(words)}")
    return question, dumps(words)
