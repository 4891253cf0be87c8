"""LLaDA: 8B Base and Instruct, and 1.5 (Nie et al., 2025)."""

from collections.abc import Mapping
from typing import Any

from unmask.backbones.families import Family, end_ids, positive_number, refuse_unless, whole_number
from unmask.backbones.transformer import TransformerConfig

PUBLISHED_TURN_END = 126348
BLOCK = "model.transformer.blocks.{i}."


def config(raw: Mapping[str, Any], specials: Mapping[str, int]) -> TransformerConfig:
    """LLaDA's config.json."""
    refuse_unless(
        raw, block_type="llama", block_group_size=1, activation_type="silu", layer_norm_type="rms", rope=True, alibi=False,
        weight_tying=False, include_bias=False, attention_layer_norm=False, clip_qkv=None, scale_logits=False,
        input_emb_norm=False,
    )  # fmt: skip
    size, heads = whole_number(raw, "d_model"), whole_number(raw, "n_heads")
    rows = whole_number(raw, "embedding_size", whole_number(raw, "vocab_size"))
    turn_end = specials.get("<|eot_id|>", PUBLISHED_TURN_END)
    return TransformerConfig(
        vocab_size=rows,
        hidden_size=size,
        layers=whole_number(raw, "n_layers"),
        heads=heads,
        kv_heads=whole_number(raw, "n_kv_heads", heads),
        mlp_size=whole_number(raw, "mlp_hidden_size", whole_number(raw, "mlp_ratio", 4) * size),
        norm_eps=positive_number(raw, "rms_norm_eps", 1e-5),
        rope_theta=positive_number(raw, "rope_theta", 10000.0),
        context=whole_number(raw, "max_sequence_length"),
        mask_id=whole_number(raw, "mask_token_id", least=0),
        end_ids=end_ids(whole_number(raw, "eos_token_id", least=0), turn_end, rows),
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
