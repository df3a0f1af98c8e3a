"""Answers constrained to a grammar, a schema, a pattern or a choice, and tool calls: infer run and infer serve."""

import concurrent.futures
import json
import pathlib
import re
import tempfile

from harness import expect, expect_equal, main, run, test, test_each
from models import DEMO_DRAFT, DEMO_TARGET, succeeded
from serving import Server

TEMPLATE = pathlib.Path(__file__).parents[1] / "data" / "tools.jinja"
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
PERSON = {"type": "object", "additionalProperties": False, "required": ["name", "age"], "properties": {
    "name": {"type": "string", "maxLength": 6}, "age": {"type": "integer", "minimum": 0, "maximum": 120}}}
WEATHER = {"type": "function", "function": {"name": "get_weather", "strict": True, "parameters": {
    "type": "object", "additionalProperties": False, "required": ["city", "days"], "properties": {
        "city": {"type": "string", "maxLength": 6}, "days": {"type": "integer", "minimum": 1, "maximum": 14}}}}}
CLOCK = {"type": "function", "function": {"name": "now", "parameters": {
    "type": "object", "additionalProperties": False, "properties": {}}}}
MESSAGES = [{"role": "user", "content": "What is the weather in Lindale?"}]
NO_THINKING = {"chat_template_kwargs": {"enable_thinking": False}}

SERVER = None


def chat(**members):
    return {"messages": MESSAGES, "max_tokens": 200, "seed": 5, **NO_THINKING, **members}


def chosen(body, path=CHAT):
    reply = SERVER.post(path, body)
    expect_equal(reply.status, 200, f"status of {body}: {reply}")
    return reply.json["choices"]


def is_person(text):
    value = json.loads(text)
    return (list(value) == ["name", "age"] and isinstance(value["name"], str) and len(value["name"]) <= 6
            and type(value["age"]) is int and 0 <= value["age"] <= 120)


def is_weather(arguments):
    value = json.loads(arguments)
    return list(value) == ["city", "days"] and len(value["city"]) <= 6 and 1 <= value["days"] <= 14


SCHEMAS = {
    "response_format": {"response_format": {"type": "json_schema", "json_schema": {"name": "p", "strict": True,
                                                                                   "schema": PERSON}}},
    "json_object with a schema": {"response_format": {"type": "json_object", "schema": PERSON}},
    "json_schema": {"json_schema": PERSON},
    "guided_json": {"guided_json": PERSON},
    "guided_json as text": {"guided_json": json.dumps(PERSON)},
    "structured_outputs": {"structured_outputs": {"json": PERSON}},
    "compact": {"structured_outputs": {"json": PERSON, "disable_any_whitespace": True}},
}


@test_each(*SCHEMAS)
def json_is_valid_at_any_temperature(spelling):
    for temperature in (0, 1, 3):
        for path, body in ((CHAT, chat()), (TEXT, {"prompt": "Once upon a time", "max_tokens": 200, "seed": 7})):
            for choice in chosen({**body, **SCHEMAS[spelling], "temperature": temperature, "n": 3}, path):
                text = choice["text"] if path == TEXT else choice["message"]["content"]
                if choice["finish_reason"] == "stop":
                    expect(is_person(text), f"a person at temperature {temperature}", choice)
                    if spelling == "compact":
                        expect_equal(text, json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":")), "JSON")
                else:
                    expect_equal(choice["finish_reason"], "length", "end of the answer")


# The member, and the texts it allows.
PATTERNS = {
    "guided_choice": (["red", "blue"], "red|blue"),
    "guided_regex": ("[0-9]{3}-[a-f]{2}", "[0-9]{3}-[a-f]{2}"),
    "guided_grammar": ('root ::= "x" [yz]{1,3}', "x[yz]{1,3}"),
    "grammar": ('root ::= item ("," item){2}\nitem ::= [a-c]+', "[a-c]+(,[a-c]+){2}"),
    "structured_outputs": ({"choice": ["p", "qq"]}, "p|qq"),
    "response_format": ({"type": "regex", "pattern": "a{2,4}"}, "a{2,4}"),
}


@test_each(*PATTERNS)
def texts_follow_the_pattern(member):
    value, pattern = PATTERNS[member]
    for body, path in ((chat(), CHAT), ({"prompt": "Once", "seed": 3, "max_tokens": 120}, TEXT)):
        for choice in chosen({**body, member: value, "n": 4, "temperature": 2}, path):
            text = choice["text"] if path == TEXT else choice["message"]["content"]
            expect(choice["finish_reason"] == "length" or re.fullmatch(pattern, text), f"{pattern}: {text!r}")


@test
def a_lazy_grammar_begins_at_its_trigger():
    body = {"prompt": "Once upon a time", "seed": 3, "max_tokens": 120, "temperature": 1, "n": 8,
            "grammar": 'root ::= " the " [0-9]{2} " ducks."', "grammar_lazy": True,
            "grammar_triggers": [{"type": 1, "value": " the "}]}
    for choice in chosen(body, TEXT):
        text = choice["text"]
        expect(" the " not in text or re.fullmatch(r".* the [0-9]{0,2}( ducks\.)?", text, re.DOTALL), text)
    for value in ("(?=x)y", "a*"):
        expect_equal(SERVER.post(TEXT, {**body, "grammar_triggers": [{"type": 2, "value": value}]}).error["param"],
                     "grammar_triggers[0].value", "a wrong pattern")
    body["grammar_triggers"] = [{"type": 2, "value": "[a-z] (th[aeiou])"}]
    body["grammar"] = 'root ::= "th" [aeiou] [0-9]{2} "."'
    for choice in chosen(body, TEXT):
        text = choice["text"]
        expect(not re.search("[a-z] th[aeiou]", text) or
               re.fullmatch(r".*?[a-z] th[aeiou]([0-9]{0,2}|[0-9]{2}\.)", text, re.DOTALL), text)


@test
def log_probabilities_are_those_of_the_unconstrained_model():
    body = {"prompt": "Once upon a time", "max_tokens": 1, "temperature": 0, "logprobs": 3}
    free = chosen(body, TEXT)[0]["logprobs"]
    held = chosen({**body, "guided_choice": ["zzz"]}, TEXT)[0]["logprobs"]
    expect_equal(held["top_logprobs"], free["top_logprobs"], "the best tokens")
    expect(held["token_logprobs"][0] < free["token_logprobs"][0], "an unlikely token", held)


def calls_of(choice):
    expect(choice["finish_reason"] in ("tool_calls", "length"), "why it ended", choice)
    return choice["message"].get("tool_calls", []) if choice["finish_reason"] == "tool_calls" else []


def valid_call(call):
    function = call["function"]
    expect(re.fullmatch("call_[A-Za-z0-9]{24}", call["id"]) and call["type"] == "function", "an id", call)
    right = is_weather(function["arguments"]) if function["name"] == "get_weather" else \
        function["name"] == "now" and json.loads(function["arguments"]) == {}
    expect(right, "a valid call", call)
    return function["name"]


@test
def required_calls_are_valid():
    both = {"get_weather", "now"}
    for choice, names in (("required", both), ({"type": "function", "function": {"name": "now"}}, {"now"}),
                          ({"type": "allowed_tools", "mode": "required",
                            "tools": [{"type": "function", "name": "get_weather"}]}, {"get_weather"})):
        body = chat(tools=[WEATHER, CLOCK], tool_choice=choice, n=6, temperature=1.5, parallel_tool_calls=False)
        n_calls = 0
        for one in chosen(body):
            calls = calls_of(one)
            expect(len(calls) <= 1 and one["message"]["content"] in (None, ""), "one call and no content", one)
            expect({valid_call(call) for call in calls} <= names, f"only {names}", one)
            n_calls += len(calls)
        expect(n_calls > 0, f"calls of {names}")


@test
def several_calls_have_ids_of_their_own():
    # The bias makes another call likely.
    call = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    grammar = 'root ::= %s' % " ".join(json.dumps(part) for part in (call, "\n", call))
    message = chosen(chat(tools=[CLOCK], grammar=grammar, tool_choice="auto", temperature=0))[0]["message"]
    ids = [call["id"] for call in message.get("tool_calls", [])]
    expect(len(set(ids)) == len(ids), "different ids", message)


@test
def no_calls_without_tools_or_with_none():
    for body in (chat(), chat(tools=[WEATHER], tool_choice="none")):
        message = chosen(body)[0]["message"]
        expect("tool_calls" not in message and message["content"], "content", message)


@test
def a_stream_adds_up_to_the_whole():
    for extra in ({"tools": [WEATHER, CLOCK], "tool_choice": "required"},
                  {"response_format": {"type": "json_object"}}, {"tools": [WEATHER], "tool_choice": "auto"}):
        body = chat(**extra, temperature=1)
        whole = chosen(body)[0]
        streamed = {"content": "", "tool_calls": []}
        finish = None
        for chunk in SERVER.stream(CHAT, body):
            for choice in chunk["choices"]:
                finish = choice["finish_reason"] or finish
                streamed["content"] += choice["delta"].get("content") or ""
                for part in choice["delta"].get("tool_calls", []):
                    if "id" in part:
                        expect_equal(part["index"], len(streamed["tool_calls"]), "order of calls")
                        streamed["tool_calls"].append({"name": part["function"]["name"], "arguments": ""})
                    expect("id" in part or "name" not in part["function"], "a name once", part)
                    streamed["tool_calls"][part["index"]]["arguments"] += part["function"]["arguments"]
        calls = [{k: call["function"][k] for k in ("name", "arguments")} for call in whole["message"].get("tool_calls", [])]
        expect_equal(streamed, {"content": whole["message"]["content"] or "", "tool_calls": calls}, f"stream with {extra}")
        expect_equal(finish, whole["finish_reason"], "finish_reason")


@test
def reasoning_before_the_answer_is_not_constrained():
    body = {**chat(guided_choice=["red", "blue"], n=4, temperature=1), "chat_template_kwargs": {}}
    for choice in chosen(body):
        message = choice["message"]
        expect(choice["finish_reason"] == "length" or message["content"] in ("red", "blue"), "a colour", message)


# Requests, the member that is wrong, and words of the message.
REFUSED = {
    "two constraints": ({"grammar": 'root ::= "a"', "json_schema": {}}, "json_schema", "use it without grammar"),
    "a grammar with an error": ({"grammar": "root ::= x"}, "grammar", "line 1, column 10"),
    "a keyword that cannot be enforced": ({"json_schema": {"not": {}}}, "json_schema", "not"),
    "no schema": ({"json_schema": [1]}, "json_schema", "a JSON schema"),
    "no value is valid": ({"json_schema": False}, "json_schema", "satisfies"),
    "an unknown format": ({"response_format": {"type": "xml"}}, "response_format.type", "json_schema"),
    "a pattern with lookahead": ({"guided_regex": "(?=a)b"}, "guided_regex", "lookaround"),
    "another tool": ({"tools": [CLOCK], "tool_choice": {"type": "function", "function": {"name": "x"}}}, "tool_choice",
                     "one of the tools"),
    "a choice without tools": ({"tool_choice": "required"}, "tool_choice", "tools"),
    "a tool without a name": ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function", "name"),
    "a strict tool": ({"tools": [{"function": {"name": "f", "strict": True, "parameters": {
        "properties": {"a": {"uniqueItems": True, "type": "array"}}}}}]}, "tools", "uniqueItems"),
    "no end": ({"json_schema": {}, "ignore_eos": True}, "ignore_eos", "constraint"),
    "a large repetition": ({"grammar": 'root ::= ([a-z]{0,1000000000} | "x" root){0,1000000000}'}, None, None),
    "an empty lazy grammar": ({"grammar": 'root ::= "a"', "grammar_lazy": True}, "grammar_triggers", "trigger"),
}


@test_each(*REFUSED)
def refused(what):
    members, param, words = REFUSED[what]
    reply = SERVER.post(CHAT, chat(**members, max_tokens=4))
    if param is None:
        expect(reply.status in (200, 400), "an answer", reply)
        return
    expect_equal((reply.status, reply.error["param"]), (400, param), f"refusal {reply}")
    expect(words in reply.error["message"], f"{words!r}", reply)


# Each is answered in a moment, and with a reason where it is refused.
HOSTILE = {
    "a value of a megabyte": {"json_schema": {"const": "x" * 1_000_000}},
    "ten thousand levels": {"json_schema": '{"items":' * 10_000 + "true" + "}" * 10_000},
    "100,000 values": {"json_schema": {"enum": [f"value {i}" for i in range(100_000)]}},
    "100,000 alternatives": {"json_schema": {"anyOf": [{"type": "string", "maxLength": i} for i in range(100_000)]}},
    "a large count": {"grammar": 'root ::= (("a" | "b" "c"){0,1000000000} "x"){0,1000000000}'},
    "a large count in a pattern": {"json_schema": {"type": "string", "pattern": "^(a{1,9}b?){0,1000000000}$"}},
}


@test
def hostile_constraints_disturb_no_one():
    body = chat(response_format={"type": "json_object"}, temperature=1, n=2)
    before = chosen(body)
    with concurrent.futures.ThreadPoolExecutor(len(HOSTILE) + 1) as pool:
        hostile = {}
        for what, members in HOSTILE.items():
            text = json.dumps(chat(**members, max_tokens=4))
            if isinstance(members.get("json_schema"), str):  # json.dumps cannot nest so deep
                text = text.replace(json.dumps(members["json_schema"]), members["json_schema"])
            hostile[what] = pool.submit(SERVER.post, CHAT, text.encode())
        expect_equal(pool.submit(chosen, body).result(), before, "an answer beside them")
    for what, reply in hostile.items():
        reply = reply.result()
        expect(reply.status in (200, 400), f"an answer to {what}", reply)
        if reply.status == 400:
            expect("expected" in reply.error["message"], f"what was expected of {what}", reply)
    expect_equal(hostile["ten thousand levels"].result().status, 400, "of ten thousand levels")


@test
def a_lenient_tool_warns():
    tool = {"function": {"name": "f", "parameters": {"type": "object", "properties": {
        "a": {"type": "array", "uniqueItems": True}}}}}
    reply = SERVER.post(CHAT, chat(tools=[tool], max_tokens=4)).json
    expect_equal(reply["warnings"], ["tools[0].function.parameters#/properties/a: uniqueItems is not enforced"],
                 "warnings")


def bodies():
    for i in range(12):
        yield chat(**(list(SCHEMAS.values())[i % 3] if i % 2 else {"tools": [WEATHER, CLOCK], "tool_choice": "required"}),
                   temperature=(0, 1, 3)[i % 3]) | {"seed": i, "n": 1 + 2 * (i % 4 == 0), "max_tokens": 80}


@test
def the_same_alone_among_others_preempted_and_with_drafts():
    def answers(server, at_once):
        def one(body):
            reply = server.post(CHAT, body)
            expect_equal(reply.status, 200, f"{reply}")
            choices = reply.json["choices"]
            for choice in choices:
                for call in choice["message"].get("tool_calls", []):
                    del call["id"]
            return choices
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            return list(pool.map(one, bodies()))

    alone = answers(SERVER, 1)
    few_blocks = ("-c", 1024, "--parallel", 8, "--ubatch-size", 40, "--kv-tokens", 1024, "--max-queue", 100)
    for flags in (("-c", 2048, "--parallel", 16), ("-c", 2048, "--parallel", 16, "--no-jump-forward"), few_blocks,
                  (*few_blocks, "-md", DEMO_DRAFT, "--spec", "lookup")):
        with Server(DEMO_TARGET, "--chat-template", TEMPLATE, *flags) as server:
            for body, one, other in zip(bodies(), alone, answers(server, 12)):
                expect_equal(other, one, f"{flags}: {body}")


def run_text(*flags, status=0):
    result = run("-m", DEMO_TARGET, "-q", "-n", 80, "--seed", 3, "--chat-template", TEMPLATE, "--jinja-vars",
                 '{"enable_thinking": false}', "-p", "What is the weather in Lindale?", *flags)
    expect_equal(result.code, status, f"status of {flags}: {result}")
    return result.out if status == 0 else result.err


@test
def run_with_constraints():
    expect(run_text("--grammar", 'root ::= "yes" | "no"').strip() in ("yes", "no"), "yes or no")
    with tempfile.TemporaryDirectory() as folder:
        grammar, schema, tools = (pathlib.Path(folder, name) for name in ("g.gbnf", "s.json", "t.json"))
        grammar.write_text('root ::= "a"{3}\n')
        expect_equal(run_text("--grammar-file", grammar), "aaa\n", "a grammar from a file")
        schema.write_text(json.dumps({"enum": ["x", 1]}))
        expect(json.loads(run_text("-jf", schema)) in ("x", 1), "a schema from a file")
        tools.write_text(json.dumps([CLOCK]))
        run_text("--tools", tools)
        tools.write_text("{}")
        expect("is not a list of tools" in run_text("--tools", tools, status=2), "no tools")
    expect(json.loads(run_text("-j", '{"type": "boolean"}', "--temp", 2)) in (True, False), "a boolean")
    expect("line 1, column 10" in run_text("--grammar", "root ::= x", status=2), "where the error is")
    expect("is not a JSON schema" in run_text("-j", "[]", status=2), "no schema")
    expect("--ignore-eos" in run_text("-j", "{}", "--ignore-eos", status=2), "no end")
    raw = succeeded(run("-m", DEMO_TARGET, "--raw", "-q", "-p", "Once", "-j", '{"const": 12}', "-n", 8)).out
    expect_equal(json.loads(raw), 12, "the constant")


if __name__ == "__main__":
    SERVER = Server(DEMO_TARGET, "--chat-template", TEMPLATE, "-c", 2048, "--parallel", 8)
    with SERVER:
        main()
