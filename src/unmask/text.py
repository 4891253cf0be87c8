"""Where strings meet token ids: tokenizers from their published files, chat templates, templates with holes."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from unmask.backbones.toy import ToyBackbone
from unmask.canvas import OPEN
from unmask.checkpoint import read_json
from unmask.errors import CheckpointError, InputError

Message = Mapping[str, str]
"""{"role": "user", "content": "..."}."""

QWEN_SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
"""How Qwen2.5, and so Dream, cuts text before byte-pair encoding; its files do not say it."""
HOLE = re.compile(r"(?<!\\)<hole:(\d+)>")


@dataclass(frozen=True, eq=False)
class Text:
    """A tokenizer with its special tokens and chat template."""

    tokenizer: Tokenizer
    specials: Mapping[str, int] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    """bos_token, eos_token, ... as the template knows them."""
    template: str | None = None
    starts_with_bos: bool = False

    @staticmethod
    def load(folder: str | Path) -> "Text":
        """The tokenizer of a checkpoint folder: tokenizer.json, or vocab.json with merges.txt and the added tokens."""
        folder = Path(folder)
        config: dict[str, Any] = {}
        if (folder / "tokenizer_config.json").is_file():
            config = read_json(folder / "tokenizer_config.json")
        if (folder / "tokenizer.json").is_file():
            try:
                tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            except Exception as error:  # the library raises a bare Exception
                raise CheckpointError(f"{folder / 'tokenizer.json'} cannot be read ({error}); download it again") from None
        elif (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
            tokenizer = _byte_pairs(folder, config)
        else:
            raise CheckpointError(f"{folder} has no tokenizer.json, nor vocab.json with merges.txt; download them")
        tokenizer.no_truncation()
        tokenizer.no_padding()
        names = {}
        for name, value in config.items():
            content = value.get("content") if isinstance(value, dict) else value
            if name.endswith("_token") and isinstance(content, str):
                names[name] = content
        specials = {token.content: index for index, token in tokenizer.get_added_tokens_decoder().items()}
        return Text(tokenizer, specials, names, _chat_template(folder, config), config.get("add_bos_token") is True)

    @property
    def size(self) -> int:
        """One more than the highest token id."""
        return max(self.tokenizer.get_vocab(with_added_tokens=True).values()) + 1

    def encode(self, text: str, *, start: bool = False) -> list[int]:
        """Token ids; `start` adds the beginning-of-text token where the model's own tokenizer would."""
        try:
            ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        except TypeError:  # what the library makes of a lone surrogate
            raise InputError(f"the text {text[:40]!r} is not valid Unicode; write it as UTF-8") from None
        bos = self.names.get("bos_token", "")
        if start and self.starts_with_bos and bos in self.specials:
            ids = [self.specials[bos], *ids]
        return ids

    def decode(self, ids: Sequence[int], *, keep_special: bool = False) -> str:
        """Text, without the special tokens unless they are asked for."""
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=not keep_special)
        return text

    def chat(self, messages: Sequence[Message]) -> str:
        """The messages in the model's own chat format, ready to be answered; a last assistant message is continued."""
        if self.template is None:
            raise InputError("this model has no chat template; give it raw text (--raw) instead of messages")
        for message in messages:
            if set(message) != {"role", "content"} or not all(isinstance(value, str) for value in message.values()):
                raise InputError(f"a message must have a role and a content, both text; this one is {dict(message)!r}")
        prefill = ""
        if messages and messages[-1]["role"] == "assistant":
            prefill, messages = messages[-1]["content"], messages[:-1]
        if not messages:
            raise InputError("there is no message to answer; give at least one of role 'user'")
        try:
            template = ENVIRONMENT.from_string(self.template)
            return template.render(messages=list(messages), add_generation_prompt=True, **self.names) + prefill
        except Exception as error:  # a template may fail in any way; the sandbox keeps it from doing more than that
            raise InputError(f"the model's chat template refuses these messages: {error}") from None

    def with_holes(self, template: str) -> list[int]:
        r"""Token ids of a template in which `<hole:8>` stands for eight open slots (`\<hole:8>` for the text itself)."""
        row: list[int] = []
        for index, part in enumerate(HOLE.split(template)):
            if index % 2 == 0:
                row += self.encode(part.replace("\\<hole:", "<hole:"))
            elif len(part) > 7 or not 1 <= int(part) <= 1_000_000:
                raise InputError(f"<hole:{part[:20]}> must have between 1 and 1000000 slots")
            else:
                row += [OPEN] * int(part)
        if OPEN not in row:
            raise InputError("the template has no hole; write <hole:8> where eight tokens are to be filled in")
        return row


def toy_text() -> Text:
    """The text of the toy backbone: one token a character."""
    toy = ToyBackbone()
    names = ("<mask>", "<eos>", "<turn>")
    vocabulary = {char: index for index, char in enumerate(toy.characters)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])
    return Text(tokenizer, {name: toy.mask_id + index for index, name in enumerate(names)})


def _raise(message: str) -> None:
    raise TemplateError(message)


def _environment() -> ImmutableSandboxedEnvironment:
    """The sandbox that published chat templates expect: nothing can be changed, no attribute leads out."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.globals["raise_exception"] = _raise
    environment.filters["tojson"] = lambda value, **options: json.dumps(value, ensure_ascii=False, **options)
    return environment


ENVIRONMENT = _environment()


def _chat_template(folder: Path, config: Mapping[str, Any]) -> str | None:
    if (folder / "chat_template.jinja").is_file():
        try:
            return (folder / "chat_template.jinja").read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise CheckpointError(f"{folder / 'chat_template.jinja'} is not UTF-8 ({error}); download it again") from None
    template = config.get("chat_template")
    if template is None and (folder / "chat_template.json").is_file():
        template = read_json(folder / "chat_template.json").get("chat_template")
    if isinstance(template, list):  # several by name
        named = [entry for entry in template if isinstance(entry, dict) and entry.get("name") == "default"]
        template = named[0].get("template") if named else None
    return template if isinstance(template, str) else None


def _byte_pairs(folder: Path, config: Mapping[str, Any]) -> Tokenizer:
    """Qwen2.5's byte-level BPE from vocab.json and merges.txt, as Dream publishes it."""
    try:
        model = models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt"))
    except Exception as error:  # the library raises a bare Exception
        raise CheckpointError(f"{folder}: vocab.json and merges.txt cannot be read ({error}); download them again") from None
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN_SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    for index, entry in sorted(_added_tokens(folder, config).items()):
        token = AddedToken(
            entry["content"], special=entry.get("special", True), normalized=entry.get("normalized", False),
            lstrip=entry.get("lstrip", False), rstrip=entry.get("rstrip", False), single_word=entry.get("single_word", False),
        )  # fmt: skip
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
        if tokenizer.token_to_id(entry["content"]) != index:
            found = tokenizer.token_to_id(entry["content"])
            raise CheckpointError(
                f"{folder}: added token {entry['content']!r} should have id {index} but gets {found}; "
                "vocab.json and tokenizer_config.json do not belong together"
            )
    return tokenizer


def _added_tokens(folder: Path, config: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    """The added tokens by id, from tokenizer_config.json and added_tokens.json."""
    try:
        added = {int(index): dict(entry) for index, entry in config.get("added_tokens_decoder", {}).items()}
        if (folder / "added_tokens.json").is_file():
            for content, index in read_json(folder / "added_tokens.json").items():
                added.setdefault(int(index), {"content": content, "special": True})
        if not all(isinstance(entry["content"], str) for entry in added.values()):
            raise TypeError("a token's content is no text")
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise CheckpointError(f"{folder}: the added tokens are not as published ({error}); download the files again") from None
    return added
