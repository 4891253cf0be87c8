"""Tokenizer files in the two published layouts, over a byte-level vocabulary small enough for tests."""

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

LLADA_TEMPLATE = (
    "{% for message in messages %}{% if loop.first %}{{ bos_token }}{% endif %}<|start_header_id|>{{ message['role'] }}"
    "<|end_header_id|>\n\n{{ message['content'] | trim }}<|eot_id|>{% endfor %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}"
)
DREAM_TEMPLATE = (
    "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nBe kind.<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
MERGES = ["h e", "l l", "he ll", "hell o", "Ġ w", "Ġw o"]


def vocabulary() -> dict[str, int]:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merged = [pair.replace(" ", "") for pair in MERGES]
    return {token: index for index, token in enumerate([*letters, *merged])}


def write_llada(folder: Path) -> dict[str, int]:
    """tokenizer.json and tokenizer_config.json; returns the special tokens."""
    vocab = vocabulary()
    tokenizer = Tokenizer(models.BPE(vocab, [tuple(pair.split(" ")) for pair in MERGES]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    names = ["<|startoftext|>", "<|endoftext|>", "<|mdm_mask|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"bos_token": "<|startoftext|>", "eos_token": {"content": "<|endoftext|>"}, "chat_template": LLADA_TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return {name: len(vocab) + index for index, name in enumerate(names)}


def write_dream(folder: Path) -> dict[str, int]:
    """vocab.json, merges.txt and the added tokens, no tokenizer.json; returns the special tokens."""
    vocab = vocabulary()
    (folder / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(MERGES) + "\n", encoding="utf-8")
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|beginoftext|>", "<|mask|>"]
    added = {str(len(vocab) + index): {"content": name, "special": True} for index, name in enumerate(names)}
    config = {
        "added_tokens_decoder": added, "bos_token": "<|beginoftext|>", "eos_token": "<|endoftext|>",
        "chat_template": DREAM_TEMPLATE, "add_bos_token": True,
    }  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return {name: len(vocab) + index for index, name in enumerate(names)}
