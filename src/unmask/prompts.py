"""Prompts to canvas rows, checked against what the model can take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unmask.backbones.base import Backbone
from unmask.canvas import OPEN
from unmask.errors import InputError
from unmask.text import Message, Text

Prompt = str | Sequence[Message]
"""Plain text, or chat messages."""


@dataclass(frozen=True)
class Row:
    """A canvas row, and where in it the answer (a window or a template) starts."""

    tokens: list[int]
    start: int


def prompt_row(
    prompt: Prompt, length: int, *, text: Text, backbone: Backbone, template: str | None = None, raw: bool = False
) -> Row:
    """A prompt and its window of `length` (or template) as one row of a canvas, checked against the model's limits."""
    if isinstance(prompt, str) and text.template is not None and not raw and prompt:
        prompt = [{"role": "user", "content": prompt}]
    written = prompt if isinstance(prompt, str) else text.chat(prompt)
    row = text.encode(written, start=isinstance(prompt, str)) if written else []
    if not row and template is None:
        raise InputError("the prompt is empty; give it some text, or a template with holes")
    if backbone.mask_id in row:
        place = row.index(backbone.mask_id)
        raise InputError(
            f"the prompt holds the mask token at position {place}; take it out, or write <hole:1> in a template instead"
        )
    start = len(row)
    row += [OPEN] * length if template is None else text.with_holes(template)
    if backbone.mask_id in row:
        raise InputError("the template holds the mask token; write <hole:1> where a token is to be filled in")
    if len(row) > backbone.context:
        fixed = sum(token != OPEN for token in row)
        raise InputError(
            f"prompt and window are {len(row)} tokens ({fixed} + {len(row) - fixed}) but the model takes "
            f"{backbone.context}; use length<={max(0, backbone.context - fixed)} or a shorter prompt"
        )
    return Row(row, start)


def as_list(prompt: Any) -> tuple[list[Prompt], bool]:
    """Prompts as a list, and whether there was only one: a string or a list of messages."""
    if isinstance(prompt, str):
        return [prompt], True
    items = list(prompt) if isinstance(prompt, Sequence) else []
    if items and all(isinstance(item, Mapping) for item in items):
        return [items], True
    if not items or not all(isinstance(item, str | Sequence) for item in items):
        raise InputError(f"a prompt is a string or a list of messages, or a list of either, not {prompt!r:.60}")
    return items, False


def pad_left(rows: Sequence[Row], pad: int) -> list[Row]:
    """Rows of one length, filled up on the left."""
    width = max(len(row.tokens) for row in rows)
    return [Row([pad] * (width - len(row.tokens)) + row.tokens, row.start + width - len(row.tokens)) for row in rows]
