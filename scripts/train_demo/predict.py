"""Gives a trained model a prediction layer (multi-token prediction, https://arxiv.org/abs/2412.19437, section 2.2).

    predict.py TARGET.gguf ROWS.npz... --out OUT.gguf --description TEXT [--passes N] [--threads N]

From the target's state at a token and the next token, the layer guesses the one after that; further guesses continue
from its own state. It learns both: pass 1 reads the target's states, every further pass those of the previous pass, as
when the layer drafts several tokens. The loss is the divergence from the target's own distribution. Embedding, head and
final norm are the target's and stay as they are.

OUT.gguf holds the target's tensors byte for byte, and the layer. `qwen3` has no prediction layers. `hy_v3` with only
dense layers computes the same and has them, so the file's architecture is `hy_v3`.
"""

import argparse
import json
import math
import time

import torch
from torch import nn
from torch.nn import functional

import gguf
import model as models
from gguf import BOOL, STRING, UINT32
from optimizer import Muon
from train import LOG_EVERY, Workers, batches, count_steps, divergence, keep_memory, schedule, wanted_positions


class PredictionLayer(models.Layer):
    def __init__(self, config):
        super().__init__(config)
        self.nextn = nn.Module()
        self.nextn.enorm, self.nextn.hnorm = models.RmsNorm(config.width), models.RmsNorm(config.width)
        self.nextn.eh_proj = models.Linear(2 * config.width, config.width)

    def mixed(self, x, earlier, mask, cos, sin):
        """As attention(), for a pass after those whose keys and values are in `earlier`: the token `d` places back was
        computed by the pass `d` before this one, and by the first where there are no more. Adds its own."""
        n_kv_head, (n_rows, length, _) = self.c.n_kv_head, x.shape
        q, k, v = self.heads(x, cos, sin)
        earlier.append((k, v))
        first_k, first_v = earlier[0]
        q = q.view(n_rows, n_kv_head, -1, length, self.c.head_dim)
        scores = torch.matmul(q, first_k.transpose(2, 3)[:, :, None]) + mask
        places = torch.arange(length)
        recent = []  # (where the token d places back is, its values)
        for d, (k, v) in enumerate(reversed(earlier[1:])):
            at = (places[:, None] - places[None, :]) == d
            scores = torch.where(at, (q * k.roll(d, 2)[:, :, None]).sum(-1, keepdim=True) + mask, scores)
            recent.append((at, (v - first_v).roll(d, 2)))
        weights = scores.softmax(-1)
        result = torch.matmul(weights, first_v[:, :, None])
        for at, change in recent:
            result = result + (weights * at).sum(-1, keepdim=True) * change[:, :, None]
        return self.joined(result.reshape(n_rows, n_kv_head, -1, self.c.head_dim))

    def forward(self, embedded, states, earlier, mask, cos, sin):
        """embedded, states: [n_rows, length, width], of each token and of the one before it."""
        x = torch.cat([self.nextn.enorm(embedded), self.nextn.hnorm(states)], -1)
        x = self.nextn.eh_proj(x.to(mask.dtype))
        x = x + self.mixed(self.attn_norm(x).to(mask.dtype), earlier, mask, cos, sin)
        return x + self.feed_forward(x, mask.dtype)


class Step:
    """Loss and gradients of a batch, a share of its rows per worker."""

    def __init__(self, target, layer, n_passes, workers):
        self._target, self._layer, self._n_passes, self._workers = target, layer, n_passes, workers
        self._parameters = list(layer.parameters())

    def _share(self, tokens, documents, wanted):
        """Sum of the divergences and number of tokens per pass, and the gradients of the mean over the passes."""
        target = self._target
        with torch.no_grad():
            states = target.hidden(tokens, documents)
            embedded = target.token_embd(tokens)[:, 1:]
        mask = models.causal_mask(tokens[:, 1:], documents[:, 1:], target.dtype)
        cos, sin = models.rotation(tokens.shape[1] - 1, target.config.head_dim, tokens.device)
        before, earlier, losses, loss = states[:, :-1], [], [], 0
        for n in range(1, self._n_passes + 1):
            before = target.output_norm(self._layer(embedded, before, earlier, mask, cos, sin))
            # Pass n needs the n tokens before.
            here = wanted.clone()
            here[:, :n] = False
            here[:, n:] &= documents[:, n:] == documents[:, :-n]
            teacher = states[here] @ target.token_embd.weight.T
            guessed = before[here[:, 1:]] @ target.token_embd.weight.T
            part = divergence(guessed, teacher)
            losses.append((part.item(), len(teacher)))
            loss = loss + part / (max(len(teacher), 1) * self._n_passes * self._workers.n)
            before = before.roll(1, 1)
        return losses, torch.autograd.grad(loss, self._parameters)

    def run(self, tokens, documents, learned):
        """Leaves the gradients in the parameters; returns the divergence per token of each pass."""
        n = self._workers.n
        wanted = wanted_positions(documents, learned)
        shares = self._workers.map(self._share, tokens[:, :-1].chunk(n), documents[:, :-1].chunk(n), wanted.chunk(n))
        for parameter, *gradients in zip(self._parameters, *(gradients for _, gradients in shares)):
            parameter.grad = sum(gradients)
        sums = [[sum(column) for column in zip(*of_pass)] for of_pass in zip(*(losses for losses, _ in shares))]
        return [total / max(count, 1) for total, count in sums]


def read_target(path):
    """(metadata, tensors, the model in BF16)"""
    metadata, tensors = gguf.read(path)
    number = {key.removeprefix("qwen3."): content for key, (_, content) in metadata.items()}
    config = models.Config(number["vocab_size"], number["block_count"], number["embedding_length"],
                           number["attention.head_count"], number["attention.head_count_kv"],
                           number["attention.key_length"], number["feed_forward_length"])
    target = models.Model(config, torch.bfloat16)
    target.load_state_dict({name: torch.from_numpy(weights.copy()) for name, (_, weights, *_) in tensors.items()})
    return metadata, tensors, target.eval().requires_grad_(False)


def train(target, layer, options):
    workers = Workers(options.threads)
    torch.set_flush_denormal(True)
    keep_memory()
    matrices = [p for p in layer.parameters() if p.dim() == 2]
    norms = [p for p in layer.parameters() if p.dim() == 1]
    steppers = [Muon(matrices, options.muon_rate, workers), torch.optim.Adam(norms, options.adam_rate)]
    rates = [stepper.param_groups[0]["lr"] for stepper in steppers]
    run = Step(target, layer, options.passes, workers)
    n_steps = count_steps(options.rows, options.batch_tokens)
    start, losses = time.monotonic(), []
    for step, batch in enumerate(batches(options.rows, options.batch_tokens, "cpu")):
        for stepper, rate in zip(steppers, rates):
            stepper.param_groups[0]["lr"] = rate * schedule(step / n_steps, options.cool_down)
        losses.append(run.run(*batch))
        for stepper in steppers:
            stepper.step()
        if not math.isfinite(sum(losses[-1])):
            raise SystemExit(f"step {step}: the losses are {losses[-1]}")
        if (step + 1) % LOG_EVERY == 0:
            means = [round(sum(column) / len(column), 4) for column in zip(*losses)]
            print(json.dumps({"step": step + 1, "of": n_steps, "losses": means,
                              "seconds": round(time.monotonic() - start)}), flush=True)
            losses = []


def write(path, metadata, tensors, layer, description):
    n_layer = metadata["qwen3.block_count"][1]
    metadata = {key.replace("qwen3.", "hy_v3."): value for key, value in metadata.items()}
    metadata["general.architecture"] = STRING, "hy_v3"
    metadata["general.description"] = STRING, description
    # There are no experts, but files of this architecture must have their parameters.
    more = {"block_count": n_layer + 1, "nextn_predict_layers": 1, "leading_dense_block_count": n_layer + 1,
            "expert_count": 1, "expert_used_count": 1, "expert_gating_func": 2,
            "expert_feed_forward_length": metadata["hy_v3.feed_forward_length"][1],
            "expert_shared_feed_forward_length": metadata["hy_v3.feed_forward_length"][1]}
    metadata.update({f"hy_v3.{key}": (UINT32, value) for key, value in more.items()})
    metadata["hy_v3.expert_weights_norm"] = BOOL, True
    tensors = dict(tensors)
    for name, weight in layer.state_dict().items():
        kind = gguf.Q8_0 if weight.dim() == 2 else gguf.F32
        tensors[f"blk.{n_layer}.{name}"] = kind, weight.float().numpy()
    gguf.write(path, metadata, tensors)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("target")
    parser.add_argument("rows", nargs="+")
    parser.add_argument("--out", required=True)
    parser.add_argument("--description", required=True)
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--batch-tokens", type=int, default=4608)
    parser.add_argument("--muon-rate", type=float, default=0.02)
    parser.add_argument("--adam-rate", type=float, default=0.004)
    parser.add_argument("--cool-down", type=float, default=0.6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    metadata, tensors, target = read_target(options.target)
    layer = PredictionLayer(target.config)
    for name, weight in layer.named_parameters():
        if weight.dim() == 2:
            nn.init.normal_(weight, std=0.02)
        if name.endswith(("attn_output.weight", "ffn_down.weight")):
            nn.init.zeros_(weight)
    train(target, layer, options)
    write(options.out, metadata, tensors, layer, options.description)


if __name__ == "__main__":
    main()
