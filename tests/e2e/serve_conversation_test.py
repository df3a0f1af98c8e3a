"""Conversations as sent by clients of OpenAI's protocol, rendered by the server with every published template.

The reference is Jinja2 with the same conversation in the form that templates expect: the arguments of calls
as objects, content that is null as "", text parts unchanged if the template reads parts, otherwise as one text.
"""

import copy
import json

from harness import expect, main, shared, test
from jinja_reference import environment, prompt_of
from models import SPM
from serving import Server

BOS, EOS = "<s>", "</s>"
TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "Its name"},
                                                    "days": {"type": "integer", "description": "How many"}},
                   "required": ["city"]}}}]


def call(arguments, name="get_weather", identifier="call12345"):
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}


def user(content="What is the weather in Zürich?"):
    return {"role": "user", "content": content}


def result(content='{"sky": "snow"}', identifier="call12345"):
    return {"role": "tool", "tool_call_id": identifier, "name": "get_weather", "content": content}


ARGUMENTS = '{"city": "Zürich", "days": 3}'
PARTS = [{"type": "text", "text": "What is"}, {"type": "text", "text": "the best book"}]

# name -> messages of the request, and whether tools are offered
CONVERSATIONS = {
    "call": ([user(), {"role": "assistant", "content": None, "tool_calls": [call(ARGUMENTS)]}, result()], True),
    "call with text": ([user(), {"role": "assistant", "content": "Let me see.", "tool_calls": [call(ARGUMENTS)]},
                        result(), {"role": "assistant", "content": "Snow."}, user("Thanks. And now?")], True),
    "call without content": ([user(), {"role": "assistant", "tool_calls": [call('{"city": "A \\"b\\" {c}"}')]},
                              result("plain")], True),
    "nested arguments": ([user(), {"role": "assistant", "content": None, "tool_calls": [
        call('{"city": {"name": "X", "at": [1.5, -2]}, "days": null, "ok": true}')]}, result()], True),
    "no arguments": ([user(), {"role": "assistant", "content": None, "tool_calls": [call("{}")]}, result()], True),
    "two calls": ([user(), {"role": "assistant", "content": None, "tool_calls": [
        call('{"city": "A"}', identifier="call00001"), call('{"city": "B"}', identifier="call00002")]},
                   result("1", "call00001"), result("2", "call00002")], True),
    "result in parts": ([user(), {"role": "assistant", "content": None, "tool_calls": [call(ARGUMENTS)]},
                         result([{"type": "text", "text": "snow"}])], True),
    "client's leftovers": ([user(), {"role": "assistant", "content": None, "refusal": None, "audio": None,
                                     "function_call": None, "annotations": None, "tool_calls": [call(ARGUMENTS)]},
                            result(), {"role": "assistant", "content": "Snow.", "tool_calls": None,
                                       "reasoning_content": None}, user("And now?")], True),
    "parts": ([user(PARTS)], False),
    "parts of the system": ([{"role": "system", "content": PARTS}, user("Well?")], False),
    "parts of an answer": ([user(), {"role": "assistant", "content": PARTS}, user("Go on")], False),
    "reasoning": ([user(), {"role": "assistant", "content": "Snow.", "reasoning_content": "Hm."}, user("Sure?")], False),
}
THINKING = {"default": None, "on": True, "off": False}


def cleaned(message):
    """The message without null members."""
    message = {key: value for key, value in message.items() if value is not None or key == "content"}
    if message.get("content") is None:
        message["content"] = ""
    return message


def with_objects(messages):
    messages = [cleaned(m) for m in copy.deepcopy(messages)]
    for message in messages:
        for one in message.get("tool_calls", []):
            one["function"]["arguments"] = json.loads(one["function"]["arguments"])
    return messages


def in_one_text(messages):
    messages = copy.deepcopy(messages)
    for message in messages:
        if isinstance(message["content"], list):
            message["content"] = "\n".join(part["text"] for part in message["content"])
    return messages


def reads_parts(prompt, messages):
    """Whether all parts appear as text and none of their JSON does."""
    texts = [part["text"] for m in messages if isinstance(m["content"], list) for part in m["content"]]
    return prompt is not None and all(t in prompt for t in texts) and "'text'" not in prompt and '"text"' not in prompt


def references(env, source, messages, tools, variables):
    """The correct prompts: none if Jinja2 renders none."""
    messages = with_objects(messages)
    variables = {"bos_token": BOS, "eos_token": EOS, "tools": tools, **variables}
    if not any(isinstance(m["content"], list) for m in messages):
        return {prompt_of(env, source, messages=messages, **variables)} - {None}
    in_parts = prompt_of(env, source, messages=messages, **variables)
    if reads_parts(in_parts, messages):
        return {in_parts}
    in_text = prompt_of(env, source, messages=in_one_text(messages), **variables)
    # A system message for which the template has no place is prepended to the user's message.
    return {in_text} - {None} if in_text and "best book" in in_text else set()


def prompts_of(env, server, source):
    """(case, correct prompts, the server's reply) for each conversation with thinking on, off and unspecified."""
    for name, (messages, with_tools) in CONVERSATIONS.items():
        for mode, thinking in THINKING.items():
            tools = TOOLS if with_tools else None
            variables = {"enable_thinking": True if thinking is None else thinking}
            right = references(env, source, messages, tools, variables)
            body = {"messages": messages, "add_generation_prompt": True}
            if tools:
                body["tools"] = tools
            if thinking is not None:
                body["chat_template_kwargs"] = {"enable_thinking": thinking}
            reply = server.post("/apply-template", body)
            # The clock may have advanced between the two.
            yield f"{name}, thinking {mode}", right | references(env, source, messages, tools, variables), reply


@test
def published_templates():
    env = environment()
    folder = shared("goldens", "chat", "templates")
    compared, wrong = 0, []
    for path in sorted(folder.glob("*.jinja")):
        source = path.read_text()
        with Server(SPM, "--chat-template", path, "-t", 1) as server:
            for case, right, reply in prompts_of(env, server, source):
                if not right:
                    continue
                compared += 1
                if reply.status != 200 or reply.json["prompt"] not in right:
                    wrong.append(f"{path.stem}: {case}\n  {min(right)!r}\n  {reply.text!r}")
    expect(not wrong, f"{len(wrong)} of {compared} prompts differ from Jinja2's", "\n".join(wrong))
    expect(compared > 1500, "most conversations can be rendered", compared)


main()
