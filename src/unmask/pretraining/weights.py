"""The weights of a small model: how they begin, and how they are written as a checkpoint in Dream's layout."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from unmask.backbones import FAMILIES
from unmask.backbones.transformer import Transformer, TransformerConfig
from unmask.checkpoint import save_checkpoint
from unmask.pretraining.recipe import Recipe
from unmask.pretraining.vocabulary import FILL, MASK
from unmask.text import Text

FAMILY = FAMILIES["dream"]
PROMPT = "bare"
"""The prompt file that says how a problem is put to these models: the question, and no instructions."""


def raw_config(recipe: Recipe, text: Text) -> dict[str, Any]:
    """config.json of the model, in Dream's layout."""
    shape = recipe.shape
    return {
        "model_type": "Dream", "architectures": ["DreamModel"], "hidden_act": "silu", "tie_word_embeddings": False,
        "vocab_size": text.size, "hidden_size": shape.hidden_size, "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads, "num_key_value_heads": shape.kv_heads, "intermediate_size": shape.mlp_size,
        "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "max_position_embeddings": shape.context, "torch_dtype": "bfloat16",
        "mask_token_id": text.specials[MASK], "eos_token_id": text.specials[FILL], "pad_token_id": text.specials[FILL],
        "unmask": {"prompt": PROMPT, "level": recipe.taught},
    }  # fmt: skip


def fresh_model(config: TransformerConfig, *, seed: int) -> Transformer:
    """A model with random weights: normal, smaller where a layer writes into the stream."""
    model = Transformer(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("norm.weight"):
                parameter.fill_(1.0)
            elif name.endswith("bias"):
                parameter.zero_()
            else:
                narrow = (2 * config.layers) ** -0.5 if name.endswith(("attn_out.weight", "down.weight")) else 1.0
                scale = 0.02 if name == "embed.weight" else narrow * parameter.shape[-1] ** -0.5
                parameter.normal_(0.0, scale, generator=generator)
    return model


def save_model(folder: Path, model: Transformer, raw: Mapping[str, Any]) -> None:
    """The model as a checkpoint of its family, in bfloat16."""
    parameters = dict(model.named_parameters())
    tensors = {
        weight.name: parameters[weight.target][weight.start : weight.start + weight.shape[0]].detach().bfloat16()
        for weight in FAMILY.weights(model.config)
    }
    save_checkpoint(folder, raw, tensors)
