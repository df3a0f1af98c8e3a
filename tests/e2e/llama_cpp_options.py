"""The options of llama.cpp's llama-cli and llama-server, and what becomes of each in `infer run` and `infer serve`.

A line: the program that has the options (cli, server or both), the outcome, a value for them (- for none), their names.
Outcomes: works (listed by --help, with the same meaning), nothing (accepted; -v says why there is nothing to do),
refused (by name, with the reason or the alternative).
"""

import collections

Option = collections.namedtuple("Option", "name programs outcome value")

PROGRAMS = {"cli": "run", "server": "serve"}

TABLE = """
both works - -h --help --usage --version --list-devices -v --verbose --log-verbose
both works 1 -t --threads -tb --threads-batch -ub --ubatch-size -b --batch-size
both works 1 -C --cpu-mask
both works 0-0 -Cr --cpu-range
both works 0 -c --ctx-size
both works 1 -n --predict --n-predict
both works linear --rope-scaling
both works 1 --rope-scale --rope-freq-scale --yarn-attn-factor --yarn-beta-slow --yarn-beta-fast
both works 10000 --rope-freq-base --yarn-orig-ctx
both works 1 --yarn-ext-factor
both works f16 -ctk --cache-type-k -ctv --cache-type-v
both works - --mlock --no-mmap -cmoe --cpu-moe
both works mmap -lm --load-mode
both works distribute --numa
both works none -dev --device
both works blk=CPU -ot --override-tensor
both works 1 -ncmoe --n-cpu-moe -ngl --gpu-layers --n-gpu-layers -ts --tensor-split
both works a.b=int:1 --override-kv
both works model.gguf -m --model -md --model-draft --spec-draft-model
both works f16 -ctkd --cache-type-k-draft --spec-draft-type-k -ctvd --cache-type-v-draft --spec-draft-type-v
both works 1 -ngld --gpu-layers-draft --n-gpu-layers-draft --spec-draft-ngl
both works 1 --draft --draft-n --draft-max --spec-draft-n-max --draft-min --draft-n-min --spec-draft-n-min
both works 0.5 --draft-p-min --spec-draft-p-min
both works top_k;temperature --samplers
both works kt --sampler-seq --sampling-seq
both works 1 -s --seed --temp --temperature --top-k --top-p --min-p --top-nsigma --top-n-sigma --xtc-probability
both works 1 --xtc-threshold --typical --typical-p --repeat-last-n --repeat-penalty --presence-penalty
both works 1 --frequency-penalty --dry-multiplier --dry-base --dry-allowed-length --dry-penalty-last-n
both works x --dry-sequence-breaker
both works 0 --dynatemp-range --dynatemp-exp --mirostat --mirostat-lr --mirostat-ent
both works 5+1 -l --logit-bias
both works chatml --chat-template
both works {} --chat-template-kwargs
both works no.jinja --chat-template-file
both works off -rea --reasoning
both works x -mu --model-url -hf -hfr --hf-repo -hff --hf-file -hft --hf-token
both works - --offline
both works 5 --reasoning-budget
cli works 5 --keep
cli works x -p --prompt -f --file -sys --system-prompt -sysf --system-prompt-file -r --reverse-prompt
cli works - --ignore-eos -st --single-turn -no-cnv --no-conversation --context-shift
cli works x --grammar --grammar-file -j --json-schema -jf --json-schema-file
server works mean --pooling
server works 2 -np --parallel -to --timeout --port
server works x -a --alias --host --cors-origins --api-key --api-key-file --ssl-key-file --ssl-cert-file

both nothing on -fa --flash-attn
both nothing - -fa --jinja --warmup --no-warmup --mmap --no-perf --perf --no-escape --log-disable --log-prefix
both nothing - --no-log-prefix --log-timestamps --no-log-timestamps --no-context-shift -kvo --kv-offload
both nothing - --repack --no-host --op-offload --swa-full --no-mmproj --no-mmproj-auto --no-mmproj-offload
both nothing - --no-spec-draft-backend-sampling
both nothing auto --log-colors
both nothing 4 -lv --verbosity --log-verbosity
both nothing -1 -dt --defrag-thold
both nothing 0 --prio --prio-batch --prio-draft --prio-batch-draft --spec-draft-prio --spec-draft-prio-batch
both nothing 1 --poll --poll-batch --poll-draft --poll-batch-draft --spec-draft-poll --spec-draft-poll-batch
both nothing 1 --cpu-strict --cpu-strict-batch --cpu-strict-draft --cpu-strict-batch-draft --spec-draft-cpu-strict
both nothing 1 --spec-draft-cpu-strict-batch
both nothing layer -sm --split-mode
both nothing 0 -mg --main-gpu
both nothing on -fit --fit
both nothing 4096 -fitc --fit-ctx
both nothing auto -lzm --lazy-mode --reasoning-format
both nothing greedy --spec-draft-sampling
both nothing 32 -ctxcp --ctx-checkpoints --swa-checkpoints -cram --cache-ram
cli nothing 1 -np --parallel
cli nothing - -cnv --conversation -mli --multiline-input --no-display-prompt --simple-io --show-timings
cli nothing on -co --color
server nothing - -cb --cont-batching -kvu --kv-unified --metrics --embeddings --embedding --no-webui --no-ui
server nothing - --no-ui-mcp-proxy --no-webui-mcp-proxy --no-agent -no-ag --cache-prompt --cache-idle-slots
server nothing - --no-cache-idle-slots --prefill-assistant --no-models-autoload --cors-credentials
server nothing - --no-cors-credentials --no-log-jsonl
server nothing 0 --cache-reuse --keep
server nothing 0.5 -sps --slot-prompt-similarity
server nothing 8 --threads-http -cms --checkpoint-min-step
server nothing x --tags
server nothing -1 --sse-ping-interval

both refused - -e --escape -nkvo --no-kv-offload -nr --no-repack -dio --direct-io -ndio --no-direct-io
both refused - --check-tensors --no-op-offload -cl --cache-list --completion-bash -sp --special --no-jinja
both refused - -bs --backend-sampling --mmproj-auto --mmproj-offload --spec-draft-backend-sampling
both refused - --skip-chat-parsing --no-skip-chat-parsing --reasoning-preserve --no-reasoning-preserve
both refused - -cmoed --cpu-moe-draft --spec-draft-cpu-moe --spec-default --gpt-oss-20b-default
both refused - --gpt-oss-120b-default --vision-gemma-4b-default --vision-gemma-12b-default
both refused row -sm --split-mode
both refused 1 -mg --main-gpu
both refused off -fit --fit
both refused 2 --prio
both refused none --reasoning-format
both refused f.log --log-file --log-prompts-dir
both refused 1 -Cb --cpu-mask-batch -Crb --cpu-range-batch -fitt --fit-target --moe-cache-mib -ncffn --n-cpu-ffn
both refused x --rpc --lora --lora-scaled --control-vector --control-vector-scaled --control-vector-layer-range
both refused x -dr --docker-repo -hfd -hfrd
both refused x --hf-repo-draft --spec-draft-hf -mm --mmproj -mmu --mmproj-url -mmdev --mmproj-device
both refused 1 --image-min-tokens --image-max-tokens --adaptive-target --adaptive-decay --reasoning-effort
both refused x --reasoning-budget-message --spec-type
both refused 1 -td --threads-draft --spec-draft-threads -tbd --threads-batch-draft --spec-draft-threads-batch
both refused 1 -Cd --cpu-mask-draft --spec-draft-cpu-mask -Crd --cpu-range-draft --spec-draft-cpu-range
both refused 1 -Cbd --cpu-mask-batch-draft --spec-draft-cpu-mask-batch -devd --device-draft --spec-draft-device
both refused 1 -otd --override-tensor-draft --spec-draft-override-tensor -ncmoed --n-cpu-moe-draft
both refused 1 --spec-draft-n-cpu-moe --spec-draft-ncmoe --draft-p-split --spec-draft-p-split
both refused 1 --spec-ngram-mod-n-min --spec-ngram-mod-n-max --spec-ngram-mod-n-match --spec-ngram-simple-size-n
both refused 1 --spec-ngram-simple-size-m --spec-ngram-simple-min-hits --spec-ngram-map-k-size-n
both refused 1 --spec-ngram-map-k-size-m --spec-ngram-map-k-min-hits --spec-ngram-map-k4v-size-n
both refused 1 --spec-ngram-map-k4v-size-m --spec-ngram-map-k4v-min-hits
cli refused x -bf --binary-file --server-base --image --audio --video -o --output --output-file
cli refused - --verbose-prompt --display-prompt --no-show-timings
cli refused 4 -np --parallel
server refused x -lcs --lookup-cache-static -lcd --lookup-cache-dynamic -r --reverse-prompt --path --api-prefix
server refused x --cors-methods --cors-headers --ui-config --webui-config --ui-config-file --webui-config-file
server refused x --tools --tools-runtime --mcp-servers-config --mcp-servers-json --slot-save-path --media-path
server refused x --models-dir --models-preset --models-max --grammar --grammar-file -j --json-schema -jf
server refused x --json-schema-file
server refused 1 --kv-unified-per-slot --mtmd-batch-max-tokens --video-fps --video-timestamp-interval
server refused 1 --video-ffmpeg-dir --embd-normalize --sleep-idle-seconds --cache-reuse --keep --sse-ping-interval
server refused 1 --spec-synth-len --spec-synth-rates --spec-ngram-size-n --spec-ngram-size-m --spec-ngram-min-hits
server refused - --ignore-eos --context-shift -no-kvu --no-kv-unified --spm-infill -nocb --no-cont-batching
server refused - --reuse-port --webui --ui --ui-mcp-proxy --webui-mcp-proxy -ag --agent --rerank --reranking
server refused - --no-cache-prompt --props --slots --no-slots --models-autoload --no-prefill-assistant
server refused - --lora-init-without-apply --log-jsonl --embd-gemma-default --fim-qwen-1.5b-default
server refused - --fim-qwen-3b-default --fim-qwen-7b-default --fim-qwen-7b-spec --fim-qwen-14b-spec
server refused - --fim-qwen-30b-default
"""

# Options of earlier versions, which guides still mention.
EARLIER = """
both nothing - -i --interactive -if --interactive-first
both refused - --prompt-cache-all --prompt-cache-ro --in-prefix-bos --tts-use-guide-tokens --license
both refused x --prompt-cache --in-prefix --in-suffix -gan --grp-attn-n -gaw --grp-attn-w -cd --ctx-size-draft
both refused x --spec-replace -mv --model-vocoder
"""


def options(table):
    for line in table.split("\n"):
        if not line:
            continue
        program, outcome, value, *names = line.split()
        programs = list(PROGRAMS.values()) if program == "both" else [PROGRAMS[program]]
        for name in names:
            yield Option(name, programs, outcome, None if value == "-" else value)


OPTIONS = [*options(TABLE), *options(EARLIER)]


def of(command, outcome):
    return [option for option in OPTIONS if command in option.programs and option.outcome == outcome]
