"""Muon for the matrices of the layers, Adam for the embedding and the norms.

Muon (Keller Jordan, 2024) replaces the momentum of a matrix by the nearest matrix with orthogonal rows, so that all
directions are learned at the same speed; on small budgets it needs fewer tokens than Adam.
"""

import torch

_NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # coefficients of the odd polynomial of degree five


def orthogonalized(g, n_steps=5):
    """g: [n, rows, columns]. Brings all singular values near 1."""
    c1, c3, c5 = _NEWTON_SCHULZ
    tall = g.shape[1] > g.shape[2]
    x = g.transpose(1, 2) if tall else g
    x = (x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)).bfloat16()  # the polynomial tolerates low precision
    for _ in range(n_steps):
        square = x @ x.transpose(1, 2)
        x = c1 * x + (c3 * square + c5 * square @ square) @ x
    x = x.float()
    return x.transpose(1, 2) if tall else x


class Muon(torch.optim.Optimizer):
    """For matrices only. Matrices of one shape go through the iteration together, shared among `workers`."""

    def __init__(self, parameters, lr, workers, momentum=0.95, weight_decay=0.0):
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self._workers = workers

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            shapes = {}
            for p in group["params"]:
                shapes.setdefault(p.shape, []).append(p)
            for shape, same in shapes.items():
                updates = []
                for p in same:
                    buffer = self.state[p].setdefault("momentum", torch.zeros_like(p))
                    buffer.lerp_(p.grad, 1 - group["momentum"])
                    updates.append(p.grad.lerp(buffer, group["momentum"]))
                scale = max(1.0, shape[0] / shape[1]) ** 0.5
                parts = self._workers.map(orthogonalized, torch.stack(updates).chunk(self._workers.n))
                for p, update in zip(same, torch.cat(parts)):
                    p.mul_(1 - group["lr"] * group["weight_decay"]).add_(update, alpha=-group["lr"] * scale)


def optimizers(model, workers, muon_lr, adam_lr, weight_decay):
    """The optimizers of a model; train.py scales their rates by one schedule."""
    matrices = [p for name, p in model.named_parameters() if p.dim() == 2 and name.startswith("blk.")]
    rest = [p for name, p in model.named_parameters() if p.dim() == 1 or not name.startswith("blk.")]
    return [Muon(matrices, muon_lr, workers, weight_decay=weight_decay),
            torch.optim.Adam(rest, adam_lr, betas=(0.9, 0.95), eps=1e-10)]
