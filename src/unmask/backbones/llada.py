"""LLaDA: 8B Base and Instruct, and 1.5 (Nie et al., 2025)."""

from collections.abc import Mapping
from typing import Any

from unmask.backbones.families import Family, refuse_unless, required
from unmask.backbones.transformer import TransformerConfig

BLOCK = "model.transformer.blocks.{i}."


def config(raw: Mapping[str, Any], specials: Mapping[str, int]) -> TransformerConfig:
    """LLaDA's config.json."""
    refuse_unless(
        raw, block_type="llama", block_group_size=1, activation_type="silu", layer_norm_type="rms", rope=True, alibi=False,
        weight_tying=False, include_bias=False, attention_layer_norm=False, scale_logits=False, input_emb_norm=False,
    )  # fmt: skip
    size, layers, heads, context = required(raw, "d_model", "n_layers", "n_heads", "max_sequence_length")
    vocabulary, mask_id, eos_id = required(raw, "vocab_size", "mask_token_id", "eos_token_id")
    turn_end = specials.get("<|eot_id|>", 126348)
    rows = raw.get("embedding_size") or vocabulary
    return TransformerConfig(
        vocab_size=rows,
        hidden_size=size,
        layers=layers,
        heads=heads,
        kv_heads=raw.get("n_kv_heads") or heads,
        mlp_size=raw.get("mlp_hidden_size") or int(raw.get("mlp_ratio", 4) * size),
        norm_eps=raw.get("rms_norm_eps", 1e-5),
        rope_theta=raw.get("rope_theta", 10000.0),
        context=context,
        mask_id=mask_id,
        end_ids=tuple(dict.fromkeys(token for token in (eos_id, turn_end) if token < rows)),
        qkv_bias=bool(raw.get("include_qkv_bias", False)),
    )


FAMILY = Family(
    name="llada",
    model_types=("llada",),
    config=config,
    names={
        "embed": "model.transformer.wte.weight",
        "attn_norm": BLOCK + "attn_norm",
        "q": BLOCK + "q_proj",
        "k": BLOCK + "k_proj",
        "v": BLOCK + "v_proj",
        "attn_out": BLOCK + "attn_out",
        "mlp_norm": BLOCK + "ff_norm",
        "gate": BLOCK + "ff_proj",
        "up": BLOCK + "up_proj",
        "down": BLOCK + "ff_out",
        "norm": "model.transformer.ln_f.weight",
        "head": "model.transformer.ff_out.weight",
    },
    published={
        "GSAI-ML/LLaDA-8B-Instruct": "chat",
        "GSAI-ML/LLaDA-8B-Base": "raw text",
        "GSAI-ML/LLaDA-1.5": "chat, preference-tuned",
    },
)
