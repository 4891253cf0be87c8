"""Shared: tiny random checkpoints in the published layouts, and views over random predictions."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from unmask import OPEN, Canvas, ToyBackbone, View, load_backbone
from unmask.backbones import FAMILIES
from unmask.checkpoint import random_tensors, save_checkpoint
from unmask.predictions import Predictions

torch.set_num_threads(1)  # the suite runs in several workers

LLADA = {
    "model_type": "llada", "architectures": ["LLaDAModelLM"], "d_model": 64, "n_layers": 3, "n_heads": 4, "n_kv_heads": 4,
    "mlp_hidden_size": 96, "vocab_size": 200, "embedding_size": 200, "max_sequence_length": 512, "rope_theta": 500000.0,
    "rms_norm_eps": 1e-5, "mask_token_id": 190, "eos_token_id": 180, "pad_token_id": 180, "block_type": "llama",
    "block_group_size": 1, "activation_type": "silu", "layer_norm_type": "rms", "rope": True, "alibi": False,
    "weight_tying": False, "include_bias": False, "include_qkv_bias": False,
}  # fmt: skip
DREAM = {
    "model_type": "Dream", "architectures": ["DreamModel"], "hidden_size": 64, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 200, "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0, "max_position_embeddings": 512, "mask_token_id": 190, "eos_token_id": 180, "pad_token_id": 180,
    "hidden_act": "silu", "tie_word_embeddings": False, "rope_scaling": None, "use_sliding_window": False,
}  # fmt: skip
CONFIGS = {"llada": LLADA, "dream": DREAM}
SPECIALS = {"<|eot_id|>": 181, "<|im_end|>": 181}


def write_checkpoint(folder: Path, family: str, *, seed: int = 0, shards: int = 3, dtype=torch.float32, **changes: Any) -> Path:
    """A random checkpoint in exactly the published layout."""
    raw = {**CONFIGS[family], **changes}
    config = FAMILIES[family].config(raw, SPECIALS)
    save_checkpoint(folder, raw, dict(random_tensors(FAMILIES[family], config, seed=seed, dtype=dtype)), shards=shards)
    return folder


@pytest.fixture(scope="session", params=sorted(CONFIGS))
def checkpoint(request, tmp_path_factory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture(scope="session")
def transformer(checkpoint):
    return load_backbone(checkpoint, specials=SPECIALS, tokens=195)


@pytest.fixture
def toy() -> ToyBackbone:
    return ToyBackbone()


class TableHead:
    """States are logits: a backbone's head for views over given numbers."""

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size

    def head(self, states: torch.Tensor) -> torch.Tensor:
        return states.clone()


def random_view(
    seed: int, rows: int = 3, length: int = 12, *, step: int = 2, steps: int = 4, most: int = 4, vocab: int = 11,
    ties: bool = True, end_ids: tuple[int, ...] = (9, 10),
) -> View:  # fmt: skip
    """A view over random logits of limited precision, so that exact ties occur; rows differ in open and masked slots."""
    generator = torch.Generator().manual_seed(seed)

    def below(high: int, *shape: int) -> torch.Tensor:
        return torch.randint(0, high, shape, generator=generator)

    canvas = Canvas.of(
        [
            [int(token) for token in below(8, 3)] + [OPEN if spot else 1 for spot in (below(4, length) > 0).tolist()] + [OPEN]
            for _ in range(rows)
        ],
        seeds=[int(number) for number in below(100, rows)],
    )
    logits = torch.randn(*canvas.slots.shape, vocab, generator=generator) * 3
    logits = (logits * 2).round() / 2 if ties else logits
    window = torch.where(below(3, *canvas.slots.shape) > 0, 8, below(8, *canvas.slots.shape))  # 8 is the mask
    window = torch.where(canvas.open, window, 0)
    for row in range(rows):  # at least one masked slot each
        window[row, 0] = 8
    masked = canvas.open & (window == 8)
    count = torch.stack([below(min(most, int(row.sum())), 1)[0] + 1 for row in masked])
    earlier = None
    for _ in range(2):  # two steps before, with almost the same predictions
        near = logits + 0.01 * torch.randn(logits.shape, generator=generator)
        earlier = Predictions(TableHead(vocab), near, canvas.open, end_ids=end_ids, banned=torch.tensor([8]), previous=earlier)
    predictions = Predictions(TableHead(vocab), logits, masked, end_ids=end_ids, banned=torch.tensor([8]), previous=earlier)
    return View(
        step=step, steps=torch.full((rows,), steps), count=count, masked=masked, window=window, mask_id=8, slots=canvas.slots,
        open=canvas.open, keys=canvas.keys, lengths=torch.tensor(canvas.lengths), predictions=predictions,
        start=torch.zeros(rows, dtype=torch.int64),
    )  # fmt: skip


def one_row(view: View, row: int) -> View:
    """The same view with one row alone, cut to that row's own width."""
    holes = int(view.open[row].sum())
    cut = (slice(row, row + 1), slice(0, holes))

    def alone(predictions: Predictions | None) -> Predictions | None:
        if predictions is None:
            return None
        return Predictions(
            predictions.backbone, predictions.states[cut], predictions.asked[cut], end_ids=predictions.end_ids,
            banned=predictions.banned, previous=alone(predictions.previous),
        )  # fmt: skip

    return View(
        step=view.step, steps=view.steps[row : row + 1], count=view.count[row : row + 1], masked=view.masked[cut],
        window=view.window[cut], mask_id=view.mask_id, slots=view.slots[cut], open=view.open[cut],
        keys=view.keys[row : row + 1], lengths=view.lengths[row : row + 1], predictions=alone(view.predictions),
        start=view.start[row : row + 1],
    )  # fmt: skip


def read(path: Path) -> Any:
    return json.loads(path.read_text())
