"""Trains the target, or a draft that follows a target.

    train.py ROWS.npz... --out MODEL.pt --layers N [--tokens N] [--teacher TARGET.pt] ...

The files of rows are used in order, once each; longer rows are used in smaller batches
of as many tokens. With --teacher the loss is the divergence from the teacher's distribution. A log line
goes to MODEL.jsonl every 20 steps; MODEL.pt is written every 200 steps and at the end.

The same arguments, PyTorch and number of threads give the same weights on one kind of machine.
"""

import argparse
import ctypes
import json
import math
import pathlib
import time
from concurrent import futures

import numpy
import torch
from torch.nn import functional

import model as models
from optimizer import optimizers

WARM_UP = 0.02  # of all steps
READ_SHARE = 0.15  # fraction of the tokens written by others that is learned as well
LOG_EVERY, SAVE_EVERY = 20, 200


def batches(paths, batch_tokens, device):
    """Yields (tokens, documents, learned), each [n_rows, length + 1]."""
    for path in paths:
        arrays = numpy.load(path)
        tokens, documents, learned = arrays["tokens"], arrays["documents"], arrays["learned"]
        n_rows = max(1, batch_tokens // (tokens.shape[1] - 1))
        for first in range(0, len(tokens) - n_rows + 1, n_rows):
            part = slice(first, first + n_rows)
            yield (torch.from_numpy(tokens[part].astype(numpy.int64)).to(device),
                   torch.from_numpy(documents[part].astype(numpy.int64)).to(device),
                   torch.from_numpy(learned[part]).to(device))


def wanted_positions(documents, learned):
    """[n_rows, length]: where the next token is learned: all of the model's own, and a random part of the others. Never
    the first token of a document, since it cannot be predicted from the end of another."""
    lot = torch.rand(learned[:, 1:].shape).to(learned.device) < READ_SHARE
    return (learned[:, 1:] | lot) & (documents[:, 1:] == documents[:, :-1])


def divergence(logits, teacher_logits):
    """KL(teacher || student) in nats, summed over the tokens."""
    return functional.kl_div(logits.log_softmax(-1), teacher_logits.log_softmax(-1), reduction="sum", log_target=True)


class Workers:
    """Threads that each run PyTorch on one core: on a busy machine this is much faster than
    letting every small operation wait for the slowest of several threads."""

    def __init__(self, n):
        self.n = n
        torch.set_num_threads(1)
        self._pool = futures.ThreadPoolExecutor(n, initializer=torch.set_num_threads, initargs=(1,))

    def map(self, function, *lists):
        """The results in list order, so that their sums do not depend on which is ready first."""
        return list(self._pool.map(function, *lists))


class Step:
    """Loss and gradients of a batch, a share of its rows per worker."""

    def __init__(self, model, teacher, workers):
        self._model, self._teacher, self._workers = model, teacher, workers
        self._parameters = list(model.parameters())

    def _share(self, tokens, documents, wanted, n_wanted):
        read = tokens[:, :-1], documents[:, :-1], wanted
        logits = self._model(*read)
        if self._teacher:
            with torch.no_grad():
                teacher_logits = self._teacher(*read)
            loss = divergence(logits, teacher_logits) / n_wanted
        else:
            loss = functional.cross_entropy(logits, tokens[:, 1:][wanted], reduction="sum") / n_wanted
        return loss.item(), torch.autograd.grad(loss, self._parameters)

    def run(self, tokens, documents, learned):
        """Leaves the gradients in the parameters; returns the loss per wanted token."""
        wanted = wanted_positions(documents, learned)
        n = self._workers.n
        shares = self._workers.map(self._share, tokens.chunk(n), documents.chunk(n), wanted.chunk(n),
                                   [wanted.sum().item()] * n)
        for parameter, *gradients in zip(self._parameters, *(gradients for _, gradients in shares)):
            parameter.grad = sum(gradients)
        return sum(loss for loss, _ in shares)


def keep_memory():
    """Keeps glibc from returning large blocks to the system, which would clear them again for the next tensor."""
    trim_threshold, mmap_threshold = -1, -3  # of mallopt
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(mmap_threshold, 1 << 30)
        libc.mallopt(trim_threshold, (1 << 31) - 1)


def schedule(progress, cool_down):
    """Factor of the learning rates; progress runs from 0 to 1, and the last `cool_down` of it decays to zero."""
    return min(1.0, (progress + 1e-3) / WARM_UP, (1.0 - progress) / cool_down)


def count_steps(paths, batch_tokens):
    return sum(1 for path in paths for _ in range(_n_batches(path, batch_tokens)))


def _n_batches(path, batch_tokens):
    n_rows, length = numpy.load(path)["tokens"].shape
    return n_rows // max(1, batch_tokens // (length - 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("rows", nargs="+")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--vocabulary-size", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--ff", type=int, default=768)
    parser.add_argument("--kv-heads", type=int, default=2)
    parser.add_argument("--teacher")
    parser.add_argument("--start", help="start from the weights of this model instead of random ones")
    parser.add_argument("--cool-down", type=float, default=0.45, help="fraction of the steps during which the rates decay")
    parser.add_argument("--batch-tokens", type=int, default=4608)
    parser.add_argument("--muon-rate", type=float, default=0.02)
    parser.add_argument("--adam-rate", type=float, default=0.004)
    parser.add_argument("--weight-decay", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--max-steps", type=int, help="stop there, regardless of the schedule")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    workers = Workers(options.threads)
    torch.set_flush_denormal(True)
    keep_memory()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    config = models.Config(options.vocabulary_size, options.layers, n_ff=options.ff, n_kv_head=options.kv_heads)
    model = models.Model(config, torch.bfloat16).to(device)
    if options.start:
        model.load_state_dict(models.load(options.start, device).state_dict())
    teacher = models.load(options.teacher, device, torch.bfloat16) if options.teacher else None
    steppers = optimizers(model, workers, options.muon_rate, options.adam_rate, options.weight_decay)
    rates = [[group["lr"] for group in stepper.param_groups] for stepper in steppers]
    run = Step(model, teacher, workers)
    n_steps = count_steps(options.rows, options.batch_tokens)
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {n_steps} steps on {device}", flush=True)

    log = options.out.with_suffix(".jsonl").open("w", encoding="utf-8")
    start, n_tokens, losses = time.monotonic(), 0, []
    for step, (tokens, documents, learned) in enumerate(batches(options.rows, options.batch_tokens, device)):
        factor = schedule(step / n_steps, options.cool_down)
        for stepper, stepper_rates in zip(steppers, rates):
            for group, rate in zip(stepper.param_groups, stepper_rates):
                group["lr"] = rate * factor
        losses.append(run.run(tokens, documents, learned))
        for stepper in steppers:
            stepper.step()
        n_tokens += tokens.numel() - len(tokens)
        if not math.isfinite(losses[-1]):
            raise SystemExit(f"step {step}: the loss is {losses[-1]}")
        if (step + 1) % LOG_EVERY == 0:
            seconds = time.monotonic() - start
            line = {"step": step + 1, "tokens": n_tokens, "loss": round(sum(losses) / len(losses), 4),
                    "seconds": round(seconds), "tokens_per_second": round(n_tokens / seconds)}
            print(json.dumps(line), flush=True)
            log.write(json.dumps(line) + "\n")
            log.flush()
            losses = []
        if (step + 1) % SAVE_EVERY == 0:
            models.save(options.out, model, step=step + 1)
        if step + 1 == options.max_steps:
            break
    models.save(options.out, model, step=n_steps)


if __name__ == "__main__":
    main()
