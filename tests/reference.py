"""A transformer written straight from the formulas, in float64 numpy, one position and one head at a time where it is short."""

import numpy as np


def rms(x, weight, eps):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weight


def rotated(x, position, theta):
    """The rotary embedding of one head vector: the pair (i, i + half) turns by position * theta^(-2i/size)."""
    half = len(x) // 2
    out = np.empty_like(x)
    for i in range(half):
        angle = position * theta ** (-2 * i / len(x))
        out[i] = x[i] * np.cos(angle) - x[i + half] * np.sin(angle)
        out[i + half] = x[i + half] * np.cos(angle) + x[i] * np.sin(angle)
    return out


def attention(query, key, value):
    scores = query @ key.T / np.sqrt(query.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ value


def forward(weights, names, tokens, *, layers, heads, kv_heads, eps, theta):
    """The states after every layer, and after the last norm; `names` are the published weight names of a family."""
    get = {name: tensor.double().numpy() for name, tensor in weights.items()}
    x = get[names["embed"]][tokens]
    states = []
    for i in range(layers):
        part = lambda stem, kind="weight": get.get(f"{names[stem].format(i=i)}.{kind}", 0.0)  # noqa: B023, E731
        h = rms(x, part("attn_norm"), eps)
        q, k, v = (h @ part(stem).T + part(stem, "bias") for stem in ("q", "k", "v"))
        width = q.shape[-1] // heads
        mixed = []
        for head in range(heads):
            shared = head // (heads // kv_heads)
            qs = np.stack([rotated(q[p, head * width : (head + 1) * width], p, theta) for p in range(len(tokens))])
            ks = np.stack([rotated(k[p, shared * width : (shared + 1) * width], p, theta) for p in range(len(tokens))])
            mixed.append(attention(qs, ks, v[:, shared * width : (shared + 1) * width]))
        x = x + np.concatenate(mixed, -1) @ part("attn_out").T
        h = rms(x, part("mlp_norm"), eps)
        gate = h @ part("gate").T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ part("up").T)) @ part("down").T
        states.append(x)
    final = rms(x, get[names["norm"]], eps)
    return states, final, final @ get[names["head"]].T
