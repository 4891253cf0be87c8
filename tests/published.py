"""LLaDA's, d1's and Dream's decoding programs at temperature 0, as plain as can be, from a description of what they do.

`logits(tokens [1, S]) -> [1, S, V]` is the model, its shift already applied.
"""

import torch


def llada(logits, prompt, *, length, steps, block, mask_id, eos=None, eot=None, dtype=None):
    """Equal quotas a block, confidence = softmax of the raw logits at the argmax, torch.topk over the whole row.

    With `eos` and `eot`: `confidence_eos_eot_inf`, which clears both logits after the argmax was taken.
    """
    x = torch.cat([prompt, torch.full((1, length), mask_id)], 1)
    blocks = length // block
    per_block = steps // blocks
    for number in range(blocks):
        end = prompt.shape[1] + (number + 1) * block
        masks = int((x[:, end - block : end] == mask_id).sum())
        for step in range(per_block):
            quota = masks // per_block + (step < masks % per_block)
            masked = x == mask_id
            z = logits(x)
            token = z.argmax(-1)
            if eos is not None:
                z[..., eos] = z[..., eot] = -torch.inf
            p = (z if dtype is None else z.to(dtype)).softmax(-1).gather(-1, token[..., None])[..., 0]
            p[:, end:] = -torch.inf
            confidence = torch.where(masked, p, -torch.inf)
            for place in confidence[0].topk(quota).indices:
                x[0, place] = torch.where(masked, token, x)[0, place]
    return x


def dream(logits, prompt, *, length, steps, measure, mask_id, top_p=None, top_k=None, eps=1e-3):
    """int(masks * (1 - s/t)) a step, confidence after top-p and top-k, torch.topk over the whole row."""
    x = torch.cat([prompt, torch.full((1, length), mask_id)], 1)
    times = torch.linspace(1, eps, steps + 1)
    for step in range(steps):
        masked = x == mask_id
        z = logits(x)[masked]
        if top_p is not None:
            values, order = z.sort(descending=True)
            beyond = values.softmax(-1).cumsum(-1) > top_p
            beyond = torch.cat([torch.zeros_like(beyond[:, :1]), beyond[:, :-1]], 1)
            z = z.masked_fill(torch.zeros_like(beyond).scatter(1, order, beyond), torch.finfo(z.dtype).min)
        if top_k is not None:
            z = z.masked_fill(z < z.topk(top_k).values[:, -1:], torch.finfo(z.dtype).min)
        p = z.softmax(-1)
        best, token = p.max(-1)
        confidence = {
            "top1": best,
            "margin": p.sort(descending=True).values[:, 0] - p.sort(descending=True).values[:, 1],
            "entropy": (p * (p + 1e-10).log()).sum(-1),
        }[measure]
        number = masked.sum().float()
        quota = int(number * (1 - times[step + 1] / times[step])) if step < steps - 1 else int(number)
        everywhere = torch.full(x.shape, -torch.inf)
        everywhere[masked] = confidence
        tokens = x.clone()
        tokens[masked] = token
        for place in everywhere[0].topk(quota).indices:
            x[0, place] = tokens[0, place]
    return x
