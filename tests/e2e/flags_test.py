"""How the command line is read: an option must be known by its whole name, and takes one value."""

import re

from harness import expect, expect_equal, main, run, test, test_each
from models import SPM, succeeded

COMMANDS = ["run", "serve", "template", "quantize", "imatrix", "perplexity", "bench", "bench-serve", "plan",
            "tokenize", "logprobs", "inspect", "devices"]
WRONG_USAGE = 2

# Names that llama.cpp's llama-cli and llama-server accept. Those that are not options here must not be read as others.
LLAMA_CPP_FLAGS = """
-h --help --usage --version --license -cl --cache-list --completion-bash --verbose-prompt --list-devices
-t --threads -tb --threads-batch -C --cpu-mask -Cr --cpu-range --cpu-strict --prio --poll -Cb --cpu-mask-batch
-Crb --cpu-range-batch --cpu-strict-batch --prio-batch --poll-batch -c --ctx-size -n --predict --n-predict
-b --batch-size -ub --ubatch-size --keep --swa-full -kvu --kv-unified -fa --flash-attn -p --prompt --no-perf --perf
-f --file -fname -bf --binary-file -e --escape --no-escape --rope-scaling --rope-scale --rope-freq-base
--rope-freq-scale --yarn-orig-ctx --yarn-ext-factor --yarn-attn-factor --yarn-beta-slow --yarn-beta-fast
-nkvo --no-kv-offload -nr --no-repack --no-host -ctk --cache-type-k -ctv --cache-type-v -dt --defrag-thold
-np --parallel --rpc --mlock --mmap --no-mmap --numa -dev --device -ot --override-tensor -cmoe --cpu-moe
-ncmoe --n-cpu-moe -ngl --gpu-layers --n-gpu-layers -sm --split-mode -ts --tensor-split -mg --main-gpu
-fit --fit -fitt --fit-target -fitc --fit-ctx --check-tensors --override-kv --no-op-offload --lora --lora-scaled
--control-vector --control-vector-scaled --control-vector-layer-range -m --model -mu --model-url -dr --docker-repo
-hf -hfr --hf-repo -hfd -hfrd --hf-repo-draft -hff --hf-file -hfv -hfrv --hf-repo-v -hffv --hf-file-v -hft --hf-token
--log-disable --log-file --log-colors -v --verbose --log-verbose --offline -lv --verbosity --log-verbosity
--log-prefix --log-timestamps --samplers -s --seed --sampling-seq --sampler-seq --ignore-eos --temp --top-k --top-p
--min-p --top-nsigma --top-n-sigma --xtc-probability --xtc-threshold --typical --repeat-last-n --repeat-penalty
--presence-penalty --frequency-penalty --dry-multiplier --dry-base --dry-allowed-length --dry-penalty-last-n
--dry-sequence-breaker --dynatemp-range --dynatemp-exp --mirostat --mirostat-lr --mirostat-ent -l --logit-bias
--grammar --grammar-file -j --json-schema -jf --json-schema-file -sp --special -cnv --conversation -no-cnv
--no-conversation -st --single-turn -sys --system-prompt -sysf --system-prompt-file -i --interactive
-if --interactive-first -mli --multiline-input -r --reverse-prompt --in-prefix-bos --in-prefix --in-suffix
--no-warmup --warmup --spm-infill --pooling -ctxcp --ctx-checkpoints --swa-checkpoints -cram --cache-ram
--context-shift --no-context-shift -gan --grp-attn-n -gaw --grp-attn-w --prompt-cache --prompt-cache-all
--prompt-cache-ro -co --color --no-display-prompt --display-prompt --simple-io -cb --cont-batching -nocb
--no-cont-batching -mm --mmproj -mmu --mmproj-url --no-mmproj --no-mmproj-offload --image --audio -a --alias --host
--port --path --api-prefix --no-webui --webui-config --embedding --embeddings --reranking --rerank --api-key
--api-key-file --ssl-key-file --ssl-cert-file --chat-template-kwargs -to --timeout --threads-http --cache-reuse
--metrics --slots --no-slots --props --slot-save-path --jinja --no-jinja --reasoning-format --reasoning-budget
--chat-template --chat-template-file --no-prefill-assistant -sps --slot-prompt-similarity --lora-init-without-apply
-td --threads-draft -tbd --threads-batch-draft -Cd --cpu-mask-draft -Crd -Cbd -Crbd --draft-max --draft --draft-n
--draft-min --draft-n-min --draft-p-min --draft-p-split -cd --ctx-size-draft -devd --device-draft
-ngld --gpu-layers-draft --n-gpu-layers-draft -md --model-draft --spec-replace -mv --model-vocoder
-ctkd --cache-type-k-draft -ctvd --cache-type-v-draft -otd --override-tensor-draft -cmoed --cpu-moe-draft
-ncmoed --n-cpu-moe-draft --tts-use-guide-tokens --embd-gemma-default --models-dir --models-max --models-preset
""".split()


def options_of(command):
    """The names that a command's --help lists."""
    listed = re.findall(r"^ +(-[^ ]+)", succeeded(run(command, "--help")).out, re.MULTILINE)
    return {name for names in listed for name in names.split(",")}


def expect_unknown(flag, result):
    """Refused by name, in one sentence, without doing anything."""
    expect_equal(result.code, WRONG_USAGE, f"exit code of\n{result}\n")
    expect_equal(result.out, "", f"standard output of\n{result}\n")
    expect(f"Unknown option {flag}. " in result.err, f"{flag} is refused by its name", result)
    expect_equal(result.err.count("\n"), 1, f"lines on standard error of\n{result}\n")


@test_each("run", "serve")
def no_flag_of_llama_cpp_is_misread(command):
    unknown = [flag for flag in LLAMA_CPP_FLAGS if flag not in options_of(command)]
    expect(len(unknown) > 20, "the table has flags that are not options here", unknown)
    for flag in unknown:
        expect_unknown(flag, run(command, "-m", SPM, flag, 4))


@test_each(*COMMANDS)
def several_letters_are_one_option(command):
    for flag in ("-rea", "-fa", "-hf", "-np", "-cb", "-sm", "-to", "-mg", "-qh", "-jx", "-hh"):
        expect_unknown(flag, run(command, flag, "off"))


@test
def options_of_several_letters_are_listed_and_work():
    expect({"-ngl", "-ctk", "-ctv", "-st", "-sys", "-sysf", "-tb", "-Cr", "-dev", "-ts", "-ncmoe", "-md", "-ngld",
            "-ctkd", "-ctvd"} <= options_of("run"), "--help lists them as they are typed", options_of("run"))
    expect("-md" in options_of("plan"), "--help of plan lists -md")
    expect_unknown("-md", run("tokenize", "-m", SPM, "-md", SPM))
    short = succeeded(run("-m", SPM, "-p", "once", "-n", 3, "--temp", 0, "-ngl", 0, "-ctk=f32", "-ctv", "f32"))
    long = succeeded(run("-m", SPM, "-p", "once", "-n", 3, "--temp", 0, "--n-gpu-layers", 0, "--cache-type-k=f32",
                         "--cache-type-v", "f32"))
    expect_equal(short.out, long.out, "the text")


@test
def a_joined_value_is_refused_with_what_to_write():
    for glued, advice in (("-n5", "Write -n 5."), ("-n-1", "Write -n -1."), ("-t2", "Write -t 2."),
                          ("-mmodel.gguf", "Write -m model.gguf."), ("-pOnce upon", "Write -p Once upon."),
                          ("-s42", "Write -s 42."), ("-temp", "Write --temp."), ("-seed=4", "Write --seed.")):
        result = run("-m", SPM, glued)
        expect_unknown(glued, result)
        expect(advice in result.err, advice, result)
    result = run("-m", SPM, "-fa")
    expect_unknown("-fa", result)
    expect("Write" not in result.err and "infer run --help" in result.err, "no file a is suggested", result)


@test
def an_option_takes_one_value():
    for extra in (("-r", "X", "foo", "bar"), ("--logit-bias", "5+1", "foo"), ("-p", "Once", "foo")):
        result = run("-m", SPM, "-p", "once", *extra)
        expect_equal((result.code, result.out), (WRONG_USAGE, ""), f"exit code and output of\n{result}\n")
        expect("Unexpected argument foo." in result.err, "the word is named", result)
    whole = succeeded(run("-m", SPM, "-p", "once", "-n", 20, "--temp", 0, "-q", "--raw")).out
    stop = whole[4:7]
    stopped = succeeded(run("-m", SPM, "-p", "once", "-n", 20, "--temp", 0, "-q", "--raw", "-r", "no such text",
                            "-r", stop))
    expect_equal(stopped.out, whole[:whole.index(stop)], "the text before the second -r")


@test
def a_missing_value_is_named():
    for flag, long in (("-n", "--predict N"), ("-ngl", "--n-gpu-layers N"), ("--seed", "--seed N"),
                       ("-r", "--stop TEXT")):
        result = run("-m", SPM, "-p", "once", flag)
        expect_equal(result.code, WRONG_USAGE, f"exit code of\n{result}\n")
        expect(f"{flag} needs a value. Write {long}." in result.err, "what to write", result)
    # An empty list or value does not consume the next argument.
    for flag in ("-ts=,", "--tensor-split=", "--predict="):
        result = run("-m", SPM, "-p", "once", flag, "-n", 3)
        expect_equal(result.code, WRONG_USAGE, f"exit code of\n{result}\n")
        expect(re.search("tensor-split|predict", result.err), "the option is named", result)


@test
def values_may_begin_with_a_dash():
    def text(*arguments):
        return succeeded(run("-m", SPM, "--temp", 0, "-q", "--raw", *arguments)).out

    five = text("-p", "-ngl", "-n", 5)
    expect_equal(text("-p=-ngl", "-n=5"), five, "an equals sign after one letter")
    expect_equal(text("--prompt=-ngl", "--n-predict=5"), five, "an equals sign")
    expect_equal(text("-p", "-ngl", "-n", 5, "-r", "--", "--stop=-r"), five, "stop texts that look like options")
    for negative in (("-n", -1), ("--predict=-1",), ("--seed", -1), ("-s", -1), ("--seed=-1",), ("-ngl", -1),
                     ("--repeat-last-n", -1), ("--dry-penalty-last-n", -1), ("--top-n-sigma", -1)):
        succeeded(run("-m", SPM, "-p", "once", "-c", 64, *negative))


@test
def two_dashes_end_the_options():
    def tokens(*arguments, stdin=""):
        return succeeded(run("tokenize", "-m", SPM, *arguments, stdin=stdin)).out

    for text in ("-n5", "--json", "-1", "-"):
        expect_equal(tokens("--", text), tokens(stdin=text), f"the tokens of {text!r}")
    result = run("tokenize", "-m", SPM, "-1")
    expect_unknown("-1", result)
    expect("Put -- before" in result.err, "how to pass it", result)


main()
