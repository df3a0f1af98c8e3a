"""infer template: prompts from templates and conversations, as users and scripts request them."""

import json
import os
import pathlib
import subprocess
import tempfile

from harness import BINARY, SOURCE_DIR, expect, expect_equal, main, run, shared, skip, test
from models import SPM

NOW = "2026-01-15T10:30:00"
TALK = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
PLAIN = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<gen>{% endif %}"


def render(source, conversation, *flags, option="--input"):
    """Runs the command with a template and a JSON document from files."""
    with tempfile.TemporaryDirectory() as folder:
        template, document = pathlib.Path(folder, "t.jinja"), pathlib.Path(folder, "c.json")
        template.write_text(source)
        document.write_text(conversation if isinstance(conversation, str) else json.dumps(conversation))
        return run("template", "--template-file", template, option, document, *flags)


def expect_prompt(result, text):
    expect_equal((result.code, result.out, result.err), (0, text, ""), "code, prompt and errors")


def expect_refusal(result, code, *needles):
    expect_equal((result.code, result.out), (code, ""), f"code and output of\n{result}\n")
    expect(result.err.count("\n") == 1 and result.err.startswith("infer template: "), "one line says why", result)
    for needle in needles:
        expect(needle in result.err, f"the line names {needle!r}", result)


@test
def prompt_of_a_conversation():
    expect_prompt(render(PLAIN, {"messages": TALK}), "<user>Hi<assistant>Hello<gen>")
    expect_prompt(render(PLAIN, {"messages": TALK, "add_generation_prompt": False}), "<user>Hi<assistant>Hello")
    expect_prompt(render(PLAIN + "\n", {"messages": TALK, "continue_final_message": True}), "<user>Hi<assistant>Hello")
    expect_prompt(render("{{ bos_token }}{{ eos_token }}{{ tools[0] }}{{ documents }}{{ mood }}",
                         {"messages": [], "bos_token": "<s>", "eos_token": "</s>", "tools": [1], "mood": "good"}),
                  "<s></s>1Nonegood")
    expect_prompt(render("{{ mood }}", {"messages": []}, "--jinja-vars", '{"mood": "better"}'), "better")


@test
def variables_as_they_are():
    expect_prompt(render("{{ a }}{{ messages is defined }}{{ tools is defined }}", {"a": 1}, option="--context"),
                  "1FalseFalse")
    expect_prompt(render("{{ a }}", {"a": 1}, "--jinja-vars", '{"a": 2}', option="--context"), "2")


@test
def standard_input_and_bytes():
    result = run("template", "--chat-template", "chatml", "--input", "-", stdin=json.dumps({"messages": TALK}))
    expect_prompt(result, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello<|im_end|>\n"
                          "<|im_start|>assistant\n")
    text = "é\r\n\u2028"
    expect_equal(render("{{ x }}", {"x": text}, option="--context").out_bytes, text.encode(), "bytes")


@test
def the_time_can_be_given():
    expect_prompt(render("{{ strftime_now('%A %d %b %Y %H:%M:%S') }}", {"messages": []}, "--now", NOW),
                  "Thursday 15 Jan 2026 10:30:00")
    for wrong in ("today", "2026-02-30T10:00:00", "2026-01-15", "2026-01-15T25:00:00", NOW + "Z"):
        expect_refusal(render("x", {"messages": []}, "--now", wrong), 2, "--now")


@test
def built_in_templates_have_names():
    names = run("template", "--list").out.split()
    expect("chatml" in names and "llama3" in names and names == sorted(names), "sorted names", names)
    for name in names:
        result = run("template", "--chat-template", name, "--input", "-", stdin=json.dumps({"messages": TALK[:1]}))
        expect(result.code == 0 and "Hi" in result.out, f"{name} makes a prompt", result)
    unknown = run("template", "--chat-template", "nope", "--input", "-", stdin='{"messages": []}')
    expect_refusal(unknown, 2, "chatml", "nope")


@test
def templates_and_tokens_of_a_model():
    command = ("template", "-m", SPM, "--chat-template", "llama2-sys", "--input", "-")
    result = run(*command, stdin=json.dumps({"messages": TALK}))
    expect_prompt(result, "<s>[INST] Hi [/INST] Hello </s>")
    expect_refusal(run("template", "-m", SPM, "--input", "-", stdin='{"messages": []}'), 1, "no chat template")
    other = json.dumps({"messages": TALK, "bos_token": "B", "eos_token": "E"})
    expect_prompt(run(*command, stdin=other), "B[INST] Hi [/INST] Hello E")


@test
def refusals_of_the_template():
    result = render("{{ raise_exception('Roles must alternate\nplease') }}", {"messages": []})
    expect_refusal(result, 1, "Roles must alternate please", "line 1")
    expect_refusal(render("{{ a.b.c }}", {"messages": []}), 1, "[template] line 1, .b: 'a' is undefined")
    expect_refusal(render("\n{% if %}", {"messages": []}), 1, "line 2")
    expect_refusal(render("{% include 'x' %}", {"messages": []}), 1, "not available")


@test
def wrong_usage():
    expect_refusal(run("template"), 2, "--input")
    expect_refusal(run("template", "--input", "-", stdin='{"messages": []}'), 2, "--model")
    both = run("template", "--chat-template", "chatml", "--template-file", "x", "--input", "-")
    expect_refusal(both, 2, "--template-file")
    for document in ("", "[]", "{", "1", '{"messages": 1}', '{"messages": [1]}', '{"x": []}',
                     '{"messages": [], "add_generation_prompt": 1}', '{"messages": [], "bos_token": 1}',
                     '{"messages": [], "continue_final_message": true}', "[" * 100000):
        expect_refusal(render(PLAIN, document), 2)
    expect_refusal(render(PLAIN, {"messages": []}, "--jinja-vars", "1"), 2, "--jinja-vars")
    missing = run("template", "--template-file", "no/such", "--input", "-", stdin='{"messages": []}')
    expect_refusal(missing, 1, "no/such")
    deep = '{"messages": [], "x": ' + "[" * 5000 + "]" * 5000 + "}"
    expect_refusal(render("{{ x }}", deep), 2, "levels")


HOSTILE = [
    "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
    "{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
    "{% for i in range(100000) %}{% set n = namespace(s='x' * 10000) %}{% set n.me = n %}{% endfor %}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{% macro f(n) %}" + "{% if 1 %}" * 100 + "{{ f(n) }}" + "{% endif %}" * 100 + "{% endmacro %}{{ f(1) }}",
    "{{ " + "(" * 100000 + "1" + ")" * 100000 + " }}",
    "{{ 1" + " + 1" * 100000 + " }}",
    "{{ a }}" * 140000,
    "{{ 'x' * 10000000000 }}",
    "{{ ('<' * 8000000) | e | e }}",
    "{{ '%1000000000d' % 1 }}",
    "{% set t = 'é' * 1000000 %}{% for i in range(100000) %}{% set x = t | upper %}{% endfor %}",
]


@test
def hostile_templates_stay_small():
    """The whole program's memory: at most 64 MB more than without a template, on a stack of 2 MB."""
    def peak(source):
        with tempfile.TemporaryDirectory() as folder:
            template, document = pathlib.Path(folder, "t"), pathlib.Path(folder, "c")
            template.write_text(source)
            document.write_text("{}")
            # A shell in between, so that the memory of this Python process does not count.
            command = ["/bin/sh", "-c", 'ulimit -s 2048; exec "$0" "$@"', BINARY, "template",
                       "--template-file", template, "--context", document]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            err = process.stderr.read().decode()
            process.stderr.close()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, err, usage.ru_maxrss // 1024

    code, _, base = peak("x")
    expect_equal(code, 0, "exit code")
    for source in HOSTILE:
        code, err, megabytes = peak(source)
        expect_equal(code, 1, f"exit code of {source[:100]}")
        expect(err.startswith("infer template: [template] "), "the line says why", err)
        expect(megabytes <= base + 64, f"{megabytes} MB, {base} MB without, for {source[:100]}")


@test
def agrees_with_jinja2():
    """The templates of tests/data/jinja_cases.json, through this machine's own Jinja2."""
    try:
        import jinja2.sandbox
    except ImportError:
        skip("no Jinja2 for Python (Debian: python3-jinja2)")
    recorded = json.loads((SOURCE_DIR / "tests" / "data" / "jinja_cases.json").read_text())
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    for case in [c for c in recorded["cases"] if "expected" in c and c["name"].startswith("statement")][::4]:
        if any(word in case["template"] for word in ("tojson", "generation", "break", "continue", "strftime")):
            continue
        expected = env.from_string(case["template"]).render(**recorded["context"])
        expect_prompt(render(case["template"], recorded["context"], option="--context"), expected)


@test
def reference_prompts():
    """One published template through the command; tests/unit does all of them."""
    folder = shared("goldens", "chat")
    conversations = json.loads((folder / "conversations.json").read_text())
    cases = json.loads((folder / "templates.json").read_text())["cases"]
    for case in [c for c in cases if c["template_file"] == "templates/Qwen-Qwen3-0.6B.jinja"]:
        document = {**{k: v for k, v in conversations[case["conversation"]].items() if k in ("messages", "tools")},
                    **case["options"]}
        result = render((folder / case["template_file"]).read_text(), document, "--now", NOW)
        if "expected" in case:
            expect_prompt(result, case["expected"])
        else:
            expect_refusal(result, 1)


CALLS = ("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}<call>{\"name\": "
         "\"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}</call>{% endfor %}<end>"
         "{% endfor %}{% if add_generation_prompt %}<gen><think>{% endif %}")
OFFER = {"messages": TALK[:1], "tools": [{"type": "function", "function": {"name": "now", "parameters": {}}}]}


def parse(conversation, lines, *flags):
    with tempfile.TemporaryDirectory() as folder:
        template, document = pathlib.Path(folder, "t.jinja"), pathlib.Path(folder, "c.json")
        template.write_text(CALLS)
        document.write_text(conversation if isinstance(conversation, str) else json.dumps(conversation))
        return run("template", "--template-file", template, "--parse", document, *(flags or ("--jsonl",)),
                   stdin="".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))


@test
def answers_are_parsed():
    text = 'Hm.</think>Hi.<call>{"name": "now", "arguments": {"a": "é"}}</call>'
    result = parse(OFFER, [{"text": text}, "", {"text": text, "chunk": 1, "finish": "stop"},
                           {"text": "x</think>a <call>{", "finish": "length"}, {"text": "x</think>a <call>{"}])
    expect_equal((result.code, result.err), (0, ""), "code and errors")
    whole, pieces, cut, stopped = [json.loads(line) for line in result.out.splitlines()]
    expect_equal((whole["content"], whole["reasoning_content"]), ("Hi.", "Hm."), "content and reasoning")
    expect_equal([(c["name"], c["arguments"]) for c in whole["tool_calls"]], [("now", '{"a": "é"}')], "calls")
    deltas = pieces["deltas"]
    expect_equal("".join(d.get("content", "") for d in deltas), "Hi.", "content of the deltas")
    expect_equal("".join(d.get("reasoning_content", "") for d in deltas), "Hm.", "reasoning of the deltas")
    calls = [d["tool_calls"][0] for d in deltas if "tool_calls" in d]
    expect_equal((calls[0]["index"], calls[0]["id"], calls[0]["type"], calls[0]["function"]["name"]),
                 (0, whole["tool_calls"][0]["id"], "function", "now"), "the first delta of the call")
    expect_equal("".join(c["function"]["arguments"] for c in calls), '{"a": "é"}', "arguments of the deltas")
    expect(all(set(c) == {"index", "function"} for c in calls[1:]), "id and type come once", calls)
    expect_equal((cut["content"], stopped["content"]), ("a", "a <call>{"), "content of an answer that is cut off")


@test
def wrong_use_of_parse_is_one_line():
    for conversation, line, *needles in (
            (OFFER, "{", "line 1", "JSON"), (OFFER, "[]", "line 1", "array"), (OFFER, {}, "line 1", "text"),
            (OFFER, {"text": 1}, "text", "number"), (OFFER, {"text": "", "finish": "end"}, "finish", "end"),
            (OFFER, {"text": "", "chunk": 0}, "chunk", "0"), (OFFER, {"text": "", "chunk": -1}, "chunk", "-1"),
            ({}, {"text": ""}, "--parse", "messages"), ("[", {"text": ""}, "JSON")):
        expect_refusal(parse(conversation, [line]), 2, *needles)
    expect_refusal(parse(OFFER, [], "--quiet"), 2)
    template = ("template", "--chat-template", "chatml")
    expect_refusal(run(*template, "--parse", "-", "--jsonl", stdin="{}"), 2, "--parse")
    expect_refusal(run(*template, "--parse", "x.json"), 2, "--jsonl")
    expect_refusal(run(*template, "--input", "-", "--jsonl", stdin='{"messages": []}'), 2, "--jsonl", "--parse")
    expect_refusal(run(*template, "--input", "-", "--parse", "x.json", "--jsonl", stdin="{}"), 2, "--parse")


main()
