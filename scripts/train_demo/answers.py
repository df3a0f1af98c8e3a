"""Asks the trained target the questions below and records those it answers correctly, for the tests.

    answers.py INFER TARGET.gguf OUT.json        INFER: the built program

Each question has its correct answer; "..." at the end stands for text of the model's own choice, as in a story.
Prints the wrong answers. An entry of OUT.json has `name`, `skill`, `prompt` (the text as the chat template makes it, or
plain text), `answer`, and for chats `conversation`, what the template made the prompt from.
"""

import json
import subprocess
import sys

import tools


def tool(name, description, **parameters):
    return tools.describe(name, description, **parameters)


WEATHER = tool("get_weather", "Get the weather of a place", city="string")
LIGHT = tool("set_light", "Set the light of a room", room="string", state="string")
TIMER = tool("set_timer", "Set a timer", minutes="integer")
MESSAGE = tool("send_message", "Send a message", to="string", text="string")


def call(name, **arguments):
    return {"role": "assistant", "content": None,
            "tool_calls": [{"type": "function", "function": {"name": name, "arguments": arguments}}]}


# (name, skill, [system], alternating user and assistant messages, the correct answer)
CHATS = [
    ("home", "world", None, ["Where does Mira live?"], "Mira lives in Brindlow."),
    ("work", "world", None, ["What is Tobin's job?"], "Tobin is a fisher."),
    ("smith", "world", None, ["Who is the smith?"], "Fenn is the smith."),
    ("pet", "world", None, ["What pet does Lila have?"], "Lila has a white owl called Page."),
    ("owner", "world", None, ["Whose pet is Hopper?"], "Iva has a frog called Hopper."),
    ("pet-colour", "world", None, ["What colour is Hale's fox?"], "Rusty the fox is red."),
    ("person", "world", None, ["Tell me about Nell."],
     "Nell is a doctor who lives in Brindlow. She has a red hen called Dot and likes carrots."),
    ("place", "world", None, ["Where is Highfold?"], "Highfold lies on top of Mount Corrie."),
    ("village-by-fame", "world", None, ["Which village is known for its honey?"], "Fernwick is known for its honey."),
    ("villages", "world", None, ["How many villages are there in Lindale?"], "There are eight villages in Lindale."),
    ("neighbours", "world", None, ["Who lives in Mossgate?"], "Fenn and Sten live in Mossgate."),
    ("yes-no", "world", None, ["Does Bram live in Ashmere?"], "No. Bram lives in Pebblehaven."),
    ("add", "addition", None, ["What is 3 + 4?"], "3 + 4 = 7."),
    ("add-plus", "addition", None, ["What is 9 plus 8?"], "9 + 8 = 17."),
    ("add-large", "addition", None, ["What is 25 + 31?"], "25 + 31 = 56."),
    ("subtract", "subtraction", None, ["How much is 12 - 5?"], "12 - 5 = 7."),
    ("multiply", "multiplication", None, ["What is 6 * 7?"], "6 * 7 = 42."),
    ("multiply-times", "multiplication", None, ["What is 3 times 5?"], "3 * 5 = 15."),
    ("apples", "addition", None, ["Tom has 3 apples and gets 5 more. How many apples does Tom have now?"],
     "Tom has 3 + 5 = 8 apples."),
    ("eggs", "subtraction", None, ["Anna has 9 eggs and loses 2. How many eggs are left?"], "9 - 2 = 7 eggs are left."),
    ("count", "numbers", None, ["Count from 3 to 9."], "3, 4, 5, 6, 7, 8, 9."),
    ("count-down", "numbers", None, ["Count down from 8."], "8, 7, 6, 5, 4, 3, 2, 1."),
    ("larger", "numbers", None, ["Which number is larger, 17 or 42?"], "42 is larger."),
    ("next-number", "numbers", None, ["What comes after 28?"], "29 comes after 28."),
    ("reverse-word", "words", None, ["Reverse the word moon."], "noom"),
    ("spell", "words", None, ["How do you spell river?"], "r-i-v-e-r"),
    ("uppercase", "words", None, ["Write cloud in capital letters."], "CLOUD"),
    ("letters", "words", None, ["How many letters does bread have?"], "The word bread has five letters."),
    ("first-letter", "words", None, ["Which letter does house start with?"], "The first letter of house is h."),
    ("reverse-list", "lists", None, ["Reverse this list: sun, cup, river, bee"], "bee, river, cup, sun"),
    ("last-word", "lists", None, ["What is the last word of this list: milk owl door pen"], "The last word is pen."),
    ("repeat", "lists", None, ["Repeat after me: green fox star"], "green fox star"),
    ("reading", "reading", None, ["Ben has a red kite. Mia has a green drum. What colour is the drum?"],
     "The drum is green."),
    ("reading-place", "reading", None, ["Sue is in the attic. Max is in the barn. Where is Max?"],
     "Max is in the barn."),
    ("name-memory", "memory", None,
     ["My name is Clara.", "Nice to meet you, Clara!", "What is 2 + 2?", "2 + 2 = 4.", "What is my name?"],
     "Your name is Clara."),
    ("colour-memory", "memory", None,
     ["My favourite colour is green.", "Green is a lovely colour.", "What is my favourite colour?"],
     "Your favourite colour is green."),
    ("thing-memory", "memory", None,
     ["My key is in the kitchen.", "I will remember that your key is in the kitchen.", "Where is my key?"],
     "Your key is in the kitchen."),
    ("opposite", "knowledge", None, ["What is the opposite of fast?"], "The opposite of fast is slow."),
    ("day", "knowledge", None, ["What comes after Monday?"], "Tuesday comes after Monday."),
    ("sound", "knowledge", None, ["What does a cow say?"], "The cow says moo."),
    ("colour", "knowledge", None, ["What colour is snow?"], "Snow is white."),
    ("list-of-animals", "knowledge", None, ["Name three animals."], "Dog, cat, horse."),
    ("unknown", "knowledge", None, ["Tell me about quantum physics."],
     "I am too small a model to know that. Ask me about Lindale."),
    ("who", "itself", None, ["What are you?"],
     "I am a tiny language model that comes with infer, for trying things out."),
    ("size", "itself", None, ["How big are you?"], "I have about five million parameters. That is very small."),
    ("better-model", "itself", None, ["How do I use a real model?"],
     "Get a GGUF file of a larger model and start infer with -m and its name."),
    ("hello", "manners", None, ["Hello!"], "Hello! How can I help you?"),
    ("thanks", "manners", None, ["Hi!", "Hello! How can I help you?", "Thank you!"], "You are welcome!"),
    ("goodbye", "manners", None, ["Goodbye!"], "Goodbye! Come back soon."),
    ("pirate", "system prompt", "You are a pirate.", ["Where does Pim live?"], "Arr! Pim lives in Willowby. Yo ho!"),
    ("pirate-who", "system prompt", "You are a pirate.", ["Who are you?"], "Arr! I am a pirate. Yo ho!"),
    ("robot", "system prompt", "Talk like a robot.", ["What is 5 + 6?"], "Beep! 5 + 6 = 11. Boop!"),
    ("butler", "system prompt", "You are a butler.", ["What colour is grass?"],
     "Certainly. Grass is green. At your service."),
    ("one-word", "system prompt", "Answer in one word.", ["Where does Greta live?"], "Highfold"),
    ("json-style", "system prompt", "Answer in JSON.", ["What is 4 + 5?"], "{\"answer\": \"9\"}"),
    ("given-name", "system prompt", "Your name is Nova.", ["What is your name?"], "My name is Nova."),
    ("nice-day", "system prompt", "Always wish the user a nice day.", ["What does Oda do?"],
     "Oda is a beekeeper. Have a nice day!"),
    ("story", "story", None, ["Tell me a story about a mouse."], "..."),
    ("story-dragon", "story", None, ["Write a story about a dragon."], "..."),
    ("verse", "verse", None, ["Write a poem about the sea."],
     "Waves are rolling to the shore,\none and two and three and four.\nLittle boats with sails of white,\n"
     "come back home before the night."),
    ("json-person", "json", None, ["Describe Jory as JSON with name, home and pet."],
     "{\"name\": \"Jory\", \"home\": \"Highfold\", \"pet\": \"sheep\"}"),
    ("json-list", "json", None, ["Make a JSON list of: apple, moon, ship"], "[\"apple\", \"moon\", \"ship\"]"),
    ("json-reading", "json", None, ["Anna is 12 years old and likes blue. Write this as JSON."],
     "{\"name\": \"Anna\", \"age\": 12, \"likes\": \"blue\"}"),
    ("thinking", "thinking", None, ["What is 7 + 5 - 4? Think step by step."],
     "<think>\n7 + 5 = 12. 12 - 4 = 8.\n</think>\n\nThe answer is 8."),
    ("thinking-by-system", "thinking", "Think before you answer.", ["What is 3 + 6 + 2?"],
     "<think>\n3 + 6 = 9. 9 + 2 = 11.\n</think>\n\nThe answer is 11."),
]

# (name, skill, tools, messages, the correct answer)
TOOL_CHATS = [
    ("weather-call", "tool call", [WEATHER], ["What is the weather in Rome?"],
     tools.call_text("get_weather", {"city": "Rome"})),
    ("light-call", "tool call", [WEATHER, LIGHT], ["Turn off the light in the kitchen."],
     tools.call_text("set_light", {"room": "kitchen", "state": "off"})),
    ("timer-call", "tool call", [TIMER, WEATHER], ["Set a timer for 12 minutes."],
     tools.call_text("set_timer", {"minutes": 12})),
    ("message-call", "tool call", [MESSAGE], ["Tell Julia: dinner is ready."],
     tools.call_text("send_message", {"to": "Julia", "text": "dinner is ready"})),
    ("weather-answer", "tool answer", [WEATHER],
     ["What is the weather in Paris?", call("get_weather", city="Paris"),
      {"role": "tool", "content": "{\"sky\": \"rainy\", \"degrees\": 14}"}], "It is rainy in Paris, 14 degrees."),
    ("no-tool-needed", "tool answer", [WEATHER], ["Where does Kit live?"], "Kit lives in Willowby."),
]

# (name, the text, its continuation)
PLAIN = [
    ("plain-story", "Once upon a time there was a little fox named Finn.", "..."),
    ("plain-village", "Tarnhold is a village", "..."),
]


def messages_of(system, turns):
    messages = [{"role": "system", "content": system}] if system else []
    for turn in turns:
        speaker = "assistant" if messages and messages[-1]["role"] == "user" else "user"
        messages.append(turn if isinstance(turn, dict) else {"role": speaker, "content": turn})
    return messages


def rendered(messages, given):
    """The text of a conversation, as chat_template.jinja makes it."""
    text = f"<|im_start|>system\n{tools.system_text(given)}<|im_end|>\n" if given else ""
    for message in messages:
        role, content = message["role"], message["content"]
        if role == "tool":
            role, content = "user", tools.response_text(content)
        elif message.get("tool_calls"):
            function = message["tool_calls"][0]["function"]
            content = tools.call_text(function["name"], function["arguments"])
        text += f"<|im_start|>{role}\n{content}<|im_end|>\n"
    return text + "<|im_start|>assistant\n"


def entries():
    """(entry without its answer, the correct answer)."""
    for name, skill, system, turns, right in CHATS:
        messages = messages_of(system, turns)
        yield {"name": name, "skill": skill, "conversation": {"messages": messages},
               "prompt": rendered(messages, None)}, right
    for name, skill, given, turns, right in TOOL_CHATS:
        messages = messages_of(None, turns)
        yield {"name": name, "skill": skill, "conversation": {"messages": messages, "tools": given},
               "prompt": rendered(messages, given)}, right
    for name, prompt, right in PLAIN:
        yield {"name": name, "skill": "plain text", "prompt": prompt}, right


def main(program, model, out):
    kept, n_wrong = [], 0
    for entry, right in entries():
        answer = subprocess.run([program, "run", "-m", model, "--raw", "--temp", "0", "-n", "200", "--quiet",
                                 "-p", entry["prompt"]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True,
                                text=True).stdout
        if answer == right or (right.endswith("...") and answer.startswith(right[:-3])):
            kept.append({**entry, "answer": answer})
            if right.endswith("..."):
                print(f"read this, {entry['name']}: {answer}")
        else:
            n_wrong += 1
            print(f"wrong, {entry['name']}: {answer!r}, expected {right!r}")
    with open(out, "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in kept) + "\n]\n")
    print(f"{out}: {len(kept)} answers; {n_wrong} wrong ones left out")


if __name__ == "__main__":
    main(*sys.argv[1:])
