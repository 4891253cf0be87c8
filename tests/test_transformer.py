"""The transformer against an independent float64 reference, layer by layer, in both published layouts."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from conftest import CONFIGS, SPECIALS, read, write_checkpoint
from reference import forward
from unmask import load_backbone
from unmask.backbones import FAMILIES
from unmask.backbones.transformer import Transformer, TransformerConfig
from unmask.errors import InputError


def tensors(folder):
    return {name: tensor for file in sorted(folder.glob("*.safetensors")) for name, tensor in load_file(file).items()}


def relative(ours, theirs):
    return np.abs(ours.double().numpy() - theirs).max() / np.abs(theirs).max()


@pytest.mark.parametrize(("family", "changes"), [
    ("llada", {}), ("llada", {"n_kv_heads": 2}), ("llada", {"include_qkv_bias": True}), ("llada", {"embedding_size": 256}),
    ("dream", {}), ("dream", {"num_key_value_heads": 4}), ("dream", {"num_key_value_heads": 1}),
])  # fmt: skip
def test_every_layer_equals_the_float64_reference(tmp_path, family, changes):
    folder = write_checkpoint(tmp_path, family, seed=3, shards=4, **changes)
    model = load_backbone(folder, specials=SPECIALS)
    config = model.config
    tokens = torch.randint(0, 200, (37,), generator=torch.Generator().manual_seed(1))
    states, final, logits = forward(
        tensors(folder), FAMILIES[family].names, tokens.numpy(), layers=config.layers, heads=config.heads,
        kv_heads=config.kv_heads, eps=config.norm_eps, theta=config.rope_theta,
    )  # fmt: skip
    outputs = []
    hooks = [layer.register_forward_hook(lambda module, args, output: outputs.append(output[0])) for layer in model.layers]
    slots = torch.arange(37)
    with torch.no_grad():
        encoded = model.encode(tokens[None], [37], slots[None])[0]
        ours = model.head(encoded)
    for hook in hooks:
        hook.remove()
    where = (slots - 1).clamp_min(0) if config.shifted else slots  # the state that predicts each position
    assert len(outputs) == config.layers
    for index, (output, state) in enumerate(zip(outputs, states, strict=True)):
        expected = state[where] if index == config.layers - 1 else state
        assert relative(output, expected) <= 1e-5, f"layer {index}"
    assert relative(encoded, final[where]) <= 1e-5
    assert relative(ours, logits[where]) <= 1e-5


def test_window_states_equal_those_of_the_whole_canvas(transformer):
    tokens = torch.randint(0, 180, (1, 40), generator=torch.Generator().manual_seed(2))
    everything = transformer.encode(tokens, [40], torch.arange(40)[None])
    some = torch.tensor([[3, 17, 18, 39, 0]])
    assert torch.allclose(transformer.encode(tokens, [40], some), everything[:, some[0]], atol=1e-5)


def test_padding_is_not_attended_to(transformer):
    generator = torch.Generator().manual_seed(3)
    row = torch.randint(0, 180, (1, 20), generator=generator)
    slots = torch.arange(20)[None]
    alone = transformer.encode(row, [20], slots)
    for junk in range(2):
        padded = torch.cat([row, torch.full((1, 13), 50 + junk)], 1)
        assert torch.allclose(transformer.encode(padded, [20], slots), alone, atol=1e-5)


def test_dream_predicts_from_the_state_before(tmp_path):
    model = load_backbone(write_checkpoint(tmp_path, "dream"))
    tokens = torch.randint(0, 180, (1, 12), generator=torch.Generator().manual_seed(4))
    shifted = model.encode(tokens, [12], torch.arange(12)[None])[0]
    model.config = TransformerConfig(**{**vars(model.config), "shifted": False})
    plain = model.encode(tokens, [12], torch.arange(12)[None])[0]
    assert torch.allclose(shifted[1:], plain[:-1], atol=1e-5)
    assert torch.allclose(shifted[0], plain[0], atol=1e-5)


LLADA_8B = {
    **CONFIGS["llada"], "d_model": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 32, "mlp_hidden_size": 12288,
    "vocab_size": 126464, "embedding_size": 126464, "max_sequence_length": 4096, "mask_token_id": 126336,
    "eos_token_id": 126081,
}  # fmt: skip
DREAM_7B = {
    **CONFIGS["dream"], "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
    "intermediate_size": 18944, "vocab_size": 152064, "max_position_embeddings": 131072, "mask_token_id": 151666,
    "eos_token_id": 151643,
}  # fmt: skip


@pytest.mark.parametrize(("family", "raw", "parameters", "ends"), [
    ("llada", LLADA_8B, 8_015_581_184, (126081, 126348)),
    ("dream", DREAM_7B, 7_615_616_512, (151643, 151645)),
])  # fmt: skip
def test_published_parameter_counts(family, raw, parameters, ends):
    config = FAMILIES[family].config(raw, {})
    with torch.device("meta"):
        model = Transformer(config)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters
    assert sum(torch.Size(weight.shape).numel() for weight in FAMILIES[family].weights(config)) == parameters
    assert config.end_ids == ends


def test_dreams_context_is_what_its_authors_give():
    assert FAMILIES["dream"].config(DREAM_7B, {}).context == 2048


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_lower_precision_stays_close(checkpoint, dtype):
    full, low = load_backbone(checkpoint), load_backbone(checkpoint, dtype=dtype)
    tokens = torch.randint(0, 180, (1, 24), generator=torch.Generator().manual_seed(5))
    slots = torch.arange(24)[None]
    expected, found = full.encode(tokens, [24], slots), low.encode(tokens, [24], slots)
    assert found.dtype == dtype
    assert (found.float() - expected).norm() / expected.norm() < 0.05


def test_special_tokens_outside_the_vocabulary_are_refused():
    with pytest.raises(InputError, match="special token 500 lies outside the vocabulary of 200"):
        FAMILIES["llada"].config({**CONFIGS["llada"], "mask_token_id": 500}, {})


def test_written_config_is_the_published_one(checkpoint):
    assert read(checkpoint / "config.json")["model_type"] in ("llada", "Dream")
