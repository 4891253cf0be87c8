"""Where an answer stands in a completion: boxes and tags, found in one pass whatever the text is."""

import re

BRACES = re.compile(r"\\boxed\s?\{|[{}]")


def tagged(text: str, tag: str = "answer") -> str | None:
    """What stands between the first opening tag and the closing tag after it, or None.

    >>> tagged("so <answer> 12 </answer>")
    ' 12 '
    """
    _, opened, rest = text.partition(f"<{tag}>")
    inside, closed, _ = rest.partition(f"</{tag}>")
    return inside if opened and closed else None


def boxes(text: str) -> list[str]:
    r"""What stands in each closed `\boxed{...}`, braces balanced, from left to right; a box within a box is part of it.

    >>> boxes(r"\boxed{\frac{1}{2}} or \boxed{3")
    ['\\frac{1}{2}']
    """
    opened: list[int | None] = []
    spans: list[tuple[int, int]] = []
    for match in BRACES.finditer(text):
        if match[0] != "}":
            opened.append(match.end() if len(match[0]) > 1 else None)
        elif opened and (start := opened.pop()) is not None:
            while spans and spans[-1][0] > start:
                spans.pop()
            spans.append((start, match.start()))
    return [text[start:end] for start, end in spans]


def final(text: str) -> str | None:
    r"""The answer that a completion ends with: the box in its answer tags, else what stands there, else the last box.

    >>> final(r"First \boxed{3}. <answer>\boxed{4}</answer>"), final(r"\boxed{5}"), final("no answer")
    ('4', '5', None)
    """
    inside = tagged(text)
    for part in (inside, text):
        found = [box.strip() for box in boxes(part or "")]
        found = [box for box in found if box.strip(". ")]
        if found:
            return found[-1]
        if part is inside and inside is not None and inside.strip():
            return inside.strip()
    return None
