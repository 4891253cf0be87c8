"""Exact numbers from text: a small grammar, rational arithmetic, and never `eval`."""

import re
from fractions import Fraction

LONGEST = 400
"""No answer is longer; a longer text is not read."""
WORDS = (
    ("\\times", "*"), ("\\cdot", "*"), ("\\div", "/"), ("×", "*"), ("·", "*"), ("÷", "/"), ("−", "-"), ("–", "-"),
    ("\\left", ""), ("\\right", ""), ("\\,", ""), ("\\!", ""), ("\\;", ""), ("\\ ", " "), ("\\(", ""), ("\\)", ""),
    ("{,}", ","), ("$", ""),
)  # fmt: skip
FRACTION = re.compile(r"\\[dt]?frac\s?\{\s*(-?[0-9]+)\s*\}\s?\{\s*(-?[0-9]+)\s*\}")
SHORT_FRACTION = re.compile(r"\\[dt]?frac\s?([0-9])\s?([0-9])")
NUMBER = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
MARKS = ("\\$", "€", "£", "\\%", "%", "^\\circ", "^{\\circ}", "°", "**")
"""What may stand at a number without changing it."""
TEXT = re.compile(r"\\(?:text|mathrm|textbf|mbox)\s?\{([^{}]*)\}")
UNIT = re.compile(
    r"(?:\s+[mgslhMGSLH]"
    r"|\s+(?=.*[A-Za-z]\.?[A-Za-z])[A-Za-z][A-Za-z ./-]*"
    r"|(?:[cmk]m|[mk]g|m[lL]|ft|lbs?|oz|hrs?|mph|[A-Za-z]{4,})(?:\s[A-Za-z ./-]*)?)$"
)
"""Words behind a number, apart or, where no unknowns look like that, right behind it; a single letter is rather an unknown."""
NAME = re.compile(r"\b(?:pi|sin|cos|tan|log|ln|exp|sqrt)\b")
LIST = re.compile(r",(?![0-9]{3})|;|\b(?:and|or)\b|\\quad")
"""What stands between several answers."""
SPACE = re.compile(r"\s*")


def value(expression: str) -> tuple[Fraction, list[int]] | None:
    """The exact value of an expression in whole numbers, + - * / and brackets, and the numbers in it; None if it is not one.

    >>> value("3 * (5 - 1) / 7")
    (Fraction(12, 7), [3, 5, 1, 7])
    >>> value("9**9"), value("1/0"), value("__import__('os')")
    (None, None, None)
    """
    text = normal(expression)
    if text is None:
        return None
    parser = _Parser(text)
    try:
        found = parser.sum()
    except (_NotAnExpressionError, ZeroDivisionError):
        return None
    return (found, parser.numbers) if parser.at_end() else None


def normal(text: str) -> str | None:
    """LaTeX's and typography's operators as + - * /; None if the text is too long to be an answer."""
    text = text.strip()
    if len(text) > LONGEST:
        return None
    text = FRACTION.sub(r"((\1)/(\2))", SHORT_FRACTION.sub(r"\\frac{\1}{\2}", text))
    for word, sign in WORDS:
        text = text.replace(word, sign)
    return text


def number(text: str) -> Fraction | None:
    r"""The number that an answer states: with thousands separators, as a fraction, in money, per cent or with a unit.

    >>> [str(number(text)) for text in ("1,000", r"\frac{3}{4}", r"\$18.50", "x = 7", "12 apples", r"5\text{ cm}", "50%")]
    ['1000', '3/4', '37/2', '7', '12', '5', '50']
    >>> number("3 or 4"), number("x = 3 or x = 4"), number("1,00"), number("4 x"), number("about")
    (None, None, None, None, None)
    """
    found = stated(text)
    return None if found is None else found[0]


def stated(text: str) -> tuple[Fraction, list[int]] | None:
    """The number, and the two whole numbers of its fraction if it is written as one.

    >>> stated("x = 2/4"), stated("0.5")
    ((Fraction(1, 2), [2, 4]), (Fraction(1, 2), []))
    """
    if len(text.strip()) > LONGEST:
        return None
    *steps, text = text.split("=")
    if any(LIST.search(step) for step in steps[1:]):
        return None
    text = TEXT.sub(lambda match: match[1] if re.search("[0-9]", match[1]) else " ", text)
    for mark in MARKS:
        text = text.replace(mark, " ")
    found = (normal(text) or "").strip(" .")
    found = found if NAME.search(found) else UNIT.sub("", found).rstrip(" .")
    whole = re.fullmatch(r"([+-]?)\s*(" + NUMBER.pattern + ")", found)
    if whole:
        return Fraction(whole[2].replace(",", "").rstrip(".")) * (-1 if whole[1] == "-" else 1), []
    if not re.fullmatch(r"[-+0-9()/\s]+", found):
        return None
    # a quotient of two whole numbers, and nothing that would still have to be worked out
    result = value(found)
    return result if result is not None and len(result[1]) == 2 and "/" in found else None


class _NotAnExpressionError(Exception):
    pass


class _Parser:
    """Recursive descent, no deeper than MOST_BRACKETS."""

    MOST_BRACKETS = 20

    def __init__(self, text: str) -> None:
        self.text, self.place, self.depth = text, 0, 0
        self.numbers: list[int] = []

    def peek(self) -> str:
        match = SPACE.match(self.text, self.place)
        self.place = match.end() if match else self.place
        return self.text[self.place : self.place + 1]

    def at_end(self) -> bool:
        return not self.peek()

    def sum(self) -> Fraction:
        total = self.product()
        while (sign := self.peek()) in ("+", "-") and sign:
            self.place += 1
            part = self.product()
            total = total + part if sign == "+" else total - part
        return total

    def product(self) -> Fraction:
        total = self.term()
        while (sign := self.peek()) in ("*", "/") and sign:
            self.place += 1
            part = self.term()
            total = total * part if sign == "*" else total / part
        return total

    def term(self) -> Fraction:
        sign = 1
        if self.peek() in ("+", "-") and self.peek():
            sign = -1 if self.peek() == "-" else 1
            self.place += 1
        char = self.peek()
        if char == "(":
            self.depth += 1
            if self.depth > self.MOST_BRACKETS:
                raise _NotAnExpressionError
            self.place += 1
            inside = self.sum()
            if self.peek() != ")":
                raise _NotAnExpressionError
            self.place += 1
            self.depth -= 1
            return sign * inside
        match = re.compile(r"[0-9]{1,30}(?![0-9.])").match(self.text, self.place)
        if match is None:
            raise _NotAnExpressionError
        self.place = match.end()
        self.numbers.append(int(match[0]))
        return Fraction(sign * int(match[0]))
