"""Dream v0, Dream-Coder and DiffuCoder (Ye et al., 2025; Gong et al., 2025): Qwen2.5's layout, shifted by one."""

from collections.abc import Mapping
from typing import Any

from unmask.backbones.families import Family, end_ids, positive_number, refuse_unless, whole_number
from unmask.backbones.transformer import TransformerConfig

PUBLISHED_TURN_END = 151645
LAYER = "model.layers.{i}."
TRAINED_CONTEXT = 2048
"""config.json says 131072, from the model it was grown out of; Dream's authors give 2048."""


def config(raw: Mapping[str, Any], specials: Mapping[str, int]) -> TransformerConfig:
    """Dream's config.json."""
    refuse_unless(raw, hidden_act="silu", tie_word_embeddings=False, use_sliding_window=False, rope_scaling=None)
    rows = whole_number(raw, "vocab_size")
    fill = "pad_token_id" if raw.get("eos_token_id") is None else "eos_token_id"
    turn_end = specials.get("<|im_end|>", PUBLISHED_TURN_END)
    return TransformerConfig(
        vocab_size=rows,
        hidden_size=whole_number(raw, "hidden_size"),
        layers=whole_number(raw, "num_hidden_layers"),
        heads=whole_number(raw, "num_attention_heads"),
        kv_heads=whole_number(raw, "num_key_value_heads"),
        mlp_size=whole_number(raw, "intermediate_size"),
        norm_eps=positive_number(raw, "rms_norm_eps", 1e-6),
        rope_theta=positive_number(raw, "rope_theta", 10000.0),
        context=min(whole_number(raw, "max_position_embeddings", TRAINED_CONTEXT), TRAINED_CONTEXT),
        mask_id=whole_number(raw, "mask_token_id", least=0),
        end_ids=end_ids(whole_number(raw, fill, least=0), turn_end, rows),
        qkv_bias=True,
        shifted=True,
    )


FAMILY = Family(
    name="dream",
    model_types=("Dream", "dream"),
    config=config,
    names={
        "embed": "model.embed_tokens.weight",
        "attn_norm": LAYER + "input_layernorm",
        "q": LAYER + "self_attn.q_proj",
        "k": LAYER + "self_attn.k_proj",
        "v": LAYER + "self_attn.v_proj",
        "attn_out": LAYER + "self_attn.o_proj",
        "mlp_norm": LAYER + "post_attention_layernorm",
        "gate": LAYER + "mlp.gate_proj",
        "up": LAYER + "mlp.up_proj",
        "down": LAYER + "mlp.down_proj",
        "norm": "model.norm.weight",
        "head": "lm_head.weight",
    },
    published={
        "Dream-org/Dream-v0-Instruct-7B": "chat",
        "Dream-org/Dream-v0-Base-7B": "raw text",
        "Dream-org/Dream-Coder-v0-Instruct-7B": "chat, code",
        "apple/DiffuCoder-7B-Instruct": "chat, code",
    },
)
