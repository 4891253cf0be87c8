"""The tokenizer of a small model: byte-level pairs in which every digit is a token of its own.

A space before a number belongs to the word before it ("has 12" is `has `, `1`, `2`), so that a digit is the same token
wherever it stands. Nothing is lost: any text can be written.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from unmask.files import whole
from unmask.pretraining.recipe import Recipe
from unmask.tasks.families import sample
from unmask.tasks.problem import STYLES
from unmask.text import Text

FILL, MASK, USER, ASSISTANT = "<|endoftext|>", "<|mask|>", "<|user|>", "<|assistant|>"
MARKS = ("<reasoning>", "</reasoning>", "<answer>", "</answer>", "\\boxed{")
"""Written often enough to be one token each; ordinary text otherwise."""
SPLIT = r"\p{N}| ?\p{L}+(?: (?=\p{N}))?| ?[^\s\p{L}\p{N}]+(?: (?=\p{N}))?|\n|[^\S\n]+"
TEXTS = 2000
"""Problems of each task that the tokenizer is learned from."""
TEMPLATE = (
    "{% for message in messages %}{% if message.role == 'system' %}{{ message.content }}\n"
    "{% else %}{{ '<|' + message.role + '|>' + message.content }}{% endif %}{% endfor %}<|assistant|>"
)


def learn(texts: Iterable[str], *, size: int) -> Tokenizer:
    """A tokenizer of at most `size` tokens, from the texts that the model will see."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in (FILL, MASK, USER, ASSISTANT)])
    tokenizer.add_tokens([AddedToken(mark, special=False, normalized=False) for mark in MARKS])
    trainer = trainers.BpeTrainer(
        vocab_size=size - len(MARKS), min_frequency=2, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=[FILL, MASK, USER, ASSISTANT],
    )  # fmt: skip
    tokenizer.train_from_iterator(texts, trainer=trainer)
    return Tokenizer.from_str(tokenizer.to_str())  # the added tokens learn the ids that training gave them


def write(tokenizer: Tokenizer, folder: Path) -> Text:
    """Write the tokenizer's files into a model folder, and read them back."""
    config = {"eos_token": FILL, "pad_token": FILL, "mask_token": MASK, "chat_template": TEMPLATE}
    for name, content in (
        ("tokenizer.json", tokenizer.to_str(pretty=False)),
        ("tokenizer_config.json", json.dumps(config, indent=2)),
    ):
        with whole(folder / name) as part:
            part.write_text(content + "\n", encoding="utf-8")
    return Text.load(folder)


def learn_from(recipe: Recipe) -> Tokenizer:
    """The tokenizer of a recipe: from problems of the tasks in its first phase, in every style."""
    texts = []
    for task in recipe.phases[0].tasks:
        for index in range(TEXTS):
            problem = sample(task, index, level=recipe.level, split="train", seed=recipe.seed)
            texts += [problem.question, *map(problem.response, STYLES)]
    return learn(texts, size=recipe.shape.vocab_size)
