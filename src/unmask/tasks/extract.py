"""Where an answer stands in a completion: boxes and tags, found in linear time whatever the text is."""

import re

import numpy as np
from numpy.typing import NDArray

BLANK = " \t\n\r."
"""A box that holds nothing else states no answer."""
CLOSING = re.compile(r"</answer>|<\|(?:eot_id|endoftext|im_end)\|>")


def tagged(text: str) -> str | None:
    """What stands between the first opening answer tag and the closing tag after it, or None.

    >>> tagged("so <answer> 12 </answer>")
    ' 12 '
    """
    _, opened, rest = text.partition("<answer>")
    inside, closed, _ = rest.partition("</answer>")
    return inside if opened and closed else None


def answered(text: str) -> str | None:
    """What the answer tags hold; where they are not closed, all up to the end of the turn; None without an opening tag.

    >>> answered("<answer> 12 </answer> 13"), answered("<answer> 12<|eot_id|>"), answered("12")
    (' 12 ', ' 12', None)
    """
    _, opened, rest = text.partition("<answer>")
    return CLOSING.split(rest, maxsplit=1)[0] if opened else None


def last_box(text: str) -> str | None:
    r"""What stands in the last closed `\boxed{...}`, braces balanced; a box within a box is part of it.

    >>> last_box(r"\boxed{1} or \boxed{\frac{1}{\boxed{2}}} or \boxed{...} or \boxed{3")
    '\\frac{1}{\\boxed{2}}'
    """
    if "\\boxed" not in text:
        return None
    codes = _codes(text)
    places, opening, depth = braces(text)
    boxed = opening & _behind_boxed(codes, places)
    near = np.flatnonzero(np.isin(depth, depth[boxed]))
    order = near[np.argsort(depth[near], kind="stable")]
    first, second = order[:-1], order[1:]  # of the braces at one depth, the one that closes follows the one that opens
    pairs = boxed[first] & ~opening[second] & (depth[first] == depth[second])
    opened, closed = places[first[pairs]], places[second[pairs]]
    written = np.cumsum(~np.isin(codes, _codes(BLANK)))
    closed = np.where(written[closed - 1] > written[opened], closed, -1)
    if closed.max(initial=-1) < 0:
        return None
    last = closed.argmax()  # no box around it is closed: that one would close later
    return text[opened[last] + 1 : closed[last]]


def braces(text: str) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """Where the braces stand, which of them open, and how many are open around each."""
    codes = _codes(text)
    places = np.flatnonzero((codes == ord("{")) | (codes == ord("}")))
    opening = codes[places] == ord("{")
    return places, opening, np.cumsum(np.where(opening, 1, -1)) - opening


def _behind_boxed(codes: NDArray[np.uint32], places: NDArray[np.int64]) -> NDArray[np.bool_]:
    r"""Which of the places stand behind `\boxed`, with or without a space between."""
    codes = np.concatenate([_codes(" " * 7), codes])
    ends = places + 7
    ends = ends - np.isin(codes[ends - 1], _codes(" \n\t"))
    found = np.ones(len(places), dtype=bool)
    for back, char in enumerate(reversed("\\boxed"), start=1):
        found &= codes[ends - back] == ord(char)
    return found


def _codes(text: str) -> NDArray[np.uint32]:
    """The characters as numbers."""
    return np.array([text]).view(np.uint32)


def final(text: str) -> str | None:
    r"""The answer that a completion ends with: the box in its answer tags, else what stands there, else the last box.

    >>> final(r"First \boxed{3}. <answer>\boxed{4}</answer>"), final(r"\boxed{5}"), final("no answer")
    ('4', '5', None)
    """
    before, _, rest = text.partition("<answer>")
    inside, *after = CLOSING.split(rest, maxsplit=1)
    found = last_box(inside)
    if found is None:
        found = inside.rpartition("\\boxed{")[2]  # what a box holds that was never closed
    if not found.strip(" \n.}"):
        found = last_box("".join(after)) or last_box(before)
    return None if found is None else found.strip()
