"""The architecture that GGUF calls qwen3, in PyTorch: grouped heads with a norm each, half-split rotation, gated SiLU.

The output matrix is the embedding. Whole sequences only, no cache; documents packed into one row do not see each other.
Weights and the residual stream are F32; the matmuls are computed in `Model.dtype`: BF16 for training
(twice as fast on processors that have it), F32 for everything else.
"""

import dataclasses

import torch
from torch import nn
from torch.nn import functional

EPSILON = 1e-6
ROPE_BASE = 10000.0


@dataclasses.dataclass
class Config:
    n_vocab: int
    n_layer: int
    width: int = 256
    n_head: int = 4
    n_kv_head: int = 2
    head_dim: int = 64
    n_ff: int = 768


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        x = x.float()
        return x * (torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * self.weight)


class Linear(nn.Module):
    """A matrix, [n_out, n_in]; the result has the type of x."""

    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_out, n_in))

    def forward(self, x):
        return functional.linear(x, self.weight.to(x.dtype))


def rotation(length, head_dim, device):
    """(cosines, sines), each [length, head_dim / 2]."""
    frequencies = ROPE_BASE ** (-torch.arange(0, head_dim, 2, device=device, dtype=torch.float32) / head_dim)
    angles = torch.arange(length, device=device, dtype=torch.float32)[:, None] * frequencies
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    """x: [..., length, head_dim]; element i is rotated with element i + head_dim / 2."""
    one, two = x.chunk(2, dim=-1)
    return torch.cat([one * cos - two * sin, two * cos + one * sin], dim=-1)


def causal_mask(tokens, documents, dtype):
    """[n_rows, 1, 1, length, length]: 0 where a token sees another, minus infinity elsewhere."""
    n_rows, length = tokens.shape
    seen = torch.ones(n_rows, length, length, dtype=torch.bool, device=tokens.device).tril()
    if documents is not None:
        seen = seen & (documents[:, :, None] == documents[:, None, :])
    mask = torch.zeros(seen.shape, dtype=dtype, device=tokens.device)
    return mask.masked_fill_(~seen, float("-inf"))[:, None, None]


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.attn_norm, self.ffn_norm = RmsNorm(c.width), RmsNorm(c.width)
        self.attn_q_norm, self.attn_k_norm = RmsNorm(c.head_dim), RmsNorm(c.head_dim)
        self.attn_q, self.attn_output = Linear(c.width, c.n_head * c.head_dim), Linear(c.n_head * c.head_dim, c.width)
        self.attn_k, self.attn_v = Linear(c.width, c.n_kv_head * c.head_dim), Linear(c.width, c.n_kv_head * c.head_dim)
        self.ffn_gate, self.ffn_up = Linear(c.width, c.n_ff), Linear(c.width, c.n_ff)
        self.ffn_down = Linear(c.n_ff, c.width)

    def heads(self, x, cos, sin):
        """x: [n_rows, length, width]. Returns q, k, v: [n_rows, n_kv_head, group * length, head_dim], in which the
        heads of a group follow each other, and twice [n_rows, n_kv_head, length, head_dim]."""
        c, (n_rows, length, _) = self.c, x.shape
        group = c.n_head // c.n_kv_head
        q = self.attn_q_norm(self.attn_q(x).view(n_rows, length, c.n_kv_head, group, c.head_dim))
        k = self.attn_k_norm(self.attn_k(x).view(n_rows, length, c.n_kv_head, c.head_dim))
        v = self.attn_v(x).view(n_rows, length, c.n_kv_head, c.head_dim).transpose(1, 2)
        q = rotate(q.permute(0, 2, 3, 1, 4), cos, sin) * c.head_dim ** -0.5
        k = rotate(k.transpose(1, 2), cos, sin)
        return q.to(x.dtype).reshape(n_rows, c.n_kv_head, group * length, c.head_dim), k.to(x.dtype), v

    def joined(self, mixed):
        """mixed: [n_rows, n_kv_head, group * length, head_dim]. Returns [n_rows, length, width]."""
        c, n_rows = self.c, len(mixed)
        mixed = mixed.reshape(n_rows, c.n_head, -1, c.head_dim).transpose(1, 2)
        return self.attn_output(mixed.reshape(n_rows, -1, c.n_head * c.head_dim))

    def attention(self, x, mask, cos, sin):
        """x: [n_rows, length, width]; mask: [n_rows, 1, 1, length, length], 0 or minus infinity."""
        c, (n_rows, length, _) = self.c, x.shape
        q, k, v = self.heads(x, cos, sin)
        scores = torch.matmul(q, k.transpose(2, 3)).view(n_rows, c.n_kv_head, -1, length, length)
        weights = scores.add_(mask).softmax(-1)
        return self.joined(torch.matmul(weights.view(n_rows, c.n_kv_head, -1, length), v))

    def feed_forward(self, x, dtype):
        h = self.ffn_norm(x).to(dtype)
        return self.ffn_down(functional.silu(self.ffn_gate(h)) * self.ffn_up(h))

    def forward(self, x, mask, cos, sin):
        x = x + self.attention(self.attn_norm(x).to(mask.dtype), mask, cos, sin)
        return x + self.feed_forward(x, mask.dtype)


class Model(nn.Module):
    def __init__(self, config, dtype=torch.float32):
        super().__init__()
        self.config = config
        self.dtype = dtype
        self.token_embd = nn.Embedding(config.n_vocab, config.width)
        self.blk = nn.ModuleList(Layer(config) for _ in range(config.n_layer))
        self.output_norm = RmsNorm(config.width)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                nn.init.normal_(weight, std=0.02)
            if name.endswith(("attn_output.weight", "ffn_down.weight")):
                nn.init.zeros_(weight)  # every layer starts as the identity

    def hidden(self, tokens, documents=None):
        """tokens, documents: [n_rows, length]. Returns the normalized state of each token, [n_rows, length, width]."""
        cos, sin = rotation(tokens.shape[1], self.config.head_dim, tokens.device)
        mask = causal_mask(tokens, documents, self.dtype)
        x = self.token_embd(tokens)
        for layer in self.blk:
            x = layer(x, mask, cos, sin)
        return self.output_norm(x)

    def forward(self, tokens, documents=None, wanted=None):
        """tokens, documents: [n_rows, length]. Returns F32 logits, [n_rows, length, n_vocab]; with `wanted`,
        [n_rows, length] of booleans, only those of its positions, [n_wanted, n_vocab]."""
        x = self.hidden(tokens, documents)
        if wanted is not None:
            x = x[wanted]
        return x @ self.token_embd.weight.T


def save(path, model, **more):
    torch.save({"config": dataclasses.asdict(model.config), "weights": model.state_dict(), **more}, path)


def load(path, device="cpu", dtype=torch.float32):
    """The model of a checkpoint, in evaluation mode."""
    content = torch.load(path, map_location=device)
    model = Model(Config(**content["config"]), dtype).to(device)
    model.load_state_dict(content["weights"])
    return model.eval()
