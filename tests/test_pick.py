"""Token choice: what is sampled, from what, and from which numbers."""

import pytest
import torch

from conftest import one_row, random_view
from unmask import InputError, View, greedy, sampled
from unmask.pick import nucleus
from unmask.predictions import Predictions


def test_greedy_is_the_raw_argmax_with_ties_to_the_lowest_id():
    ties = 0
    for seed in range(6):
        view = random_view(seed)
        logits = view.predictions.states.index_fill(-1, view.predictions.banned, -torch.inf)
        highest = logits == logits.amax(-1, keepdim=True)
        ties += int((highest.sum(-1) > 1)[view.masked].sum())
        assert torch.equal(greedy(view, view.masked)[view.masked], highest.int().argmax(-1)[view.masked])
    assert ties > 5


def test_sampling_follows_the_tempered_softmax():
    """Chi-squared over 40,000 draws, at a level passed by all but one in a million correct samplers."""
    view = random_view(0, rows=1, length=4, ties=False)
    slot = int(view.masked[0].nonzero()[0])
    where = torch.zeros_like(view.masked)
    where[0, slot] = True
    logits = view.predictions.states[0, slot].double().index_fill(0, view.predictions.banned, -torch.inf)
    wanted = (logits / 0.7).softmax(-1)
    number = 40_000
    wide = view.predictions.states[:, slot : slot + 1].expand(1, number, -1)
    many = torch.ones(1, number, dtype=torch.bool)
    crowd = View(**{
        **vars(view), "masked": many, "open": many, "slots": torch.arange(number)[None], "window": torch.full((1, number), 8),
        "predictions": Predictions(view.predictions.backbone, wide, many, end_ids=(9,), banned=view.predictions.banned),
    })  # fmt: skip
    counts = sampled(0.7)(crowd, many)[0].bincount(minlength=11)
    allowed = wanted > 0
    chi = ((counts - number * wanted)[allowed] ** 2 / (number * wanted[allowed])).sum()
    assert counts[~allowed].sum() == 0
    assert chi < 47  # 9 degrees of freedom; P(chi > 47) < 1e-6


@pytest.mark.parametrize("temperature", [1e-6, 1e6])
def test_extreme_temperatures_never_write_a_banned_token(temperature):
    for seed in range(4):
        view = random_view(seed)
        assert (sampled(temperature)(view, view.masked)[view.masked] != 8).all()


def test_zero_temperature_limit_is_greedy():
    for seed in range(4):
        view = random_view(seed, ties=False)
        assert torch.equal(sampled(1e-4)(view, view.masked)[view.masked], greedy(view, view.masked)[view.masked])


def test_a_slot_gets_the_same_token_however_often_and_with_whom_it_is_asked():
    view = random_view(2)
    pick = sampled(1.5)
    everywhere = pick(view, view.masked)
    for row in range(len(view.masked)):
        for slot in view.masked[row].nonzero()[:, 0].tolist():
            only = torch.zeros_like(view.masked)
            only[row, slot] = True
            assert pick(view, only)[row, slot] == everywhere[row, slot]
        alone = one_row(view, row)
        assert torch.equal(pick(alone, alone.masked)[alone.masked], everywhere[row][view.masked[row]])


def test_steps_and_rows_draw_different_numbers():
    first, second = (sampled(5.0)(view, view.masked) for view in (random_view(7, step=1), random_view(7, step=2)))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("top_k", [1, 2, 5, 11, 100])
def test_top_k_keeps_the_k_best(top_k):
    logits = torch.randn(20, 11, generator=torch.Generator().manual_seed(1)).round()
    kept = nucleus(logits, None, top_k) > -torch.inf
    assert (kept.sum(-1) == min(top_k, 11)).all()
    for line, mask in zip(logits, kept, strict=True):
        assert line[mask].min() >= line[~mask].max() if (~mask).any() else True


@pytest.mark.parametrize("top_p", [0.1, 0.5, 0.9, 1.0])
def test_top_p_keeps_the_smallest_set_that_reaches_p(top_p):
    logits = torch.randn(20, 11, generator=torch.Generator().manual_seed(2)).double() * 2
    kept = nucleus(logits, top_p, None) > -torch.inf
    p = logits.softmax(-1)
    for mass, mask in zip(p, kept, strict=True):
        assert mass[mask].sum() >= min(top_p, 1 - 1e-9)
        assert mask.sum() == 1 or mass[mask].sum() - mass[mask].min() <= top_p


@pytest.mark.parametrize(("call", "words"), [
    (lambda: sampled(0.0), "temperature=0.0 must lie between 1e-06 and"),
    (lambda: sampled(1e39), r"temperature=1e\+39 must lie between"),
    (lambda: sampled(1e-40), "temperature=1e-40 must lie between"),
    (lambda: sampled(float("nan")), "temperature=nan"),
    (lambda: sampled(1.0, top_p=0.0), r"top_p=0.0 must lie in \(0, 1\]"),
    (lambda: sampled(1.0, top_k=0), "top_k=0 must be at least 1"),
])  # fmt: skip
def test_bad_input_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()
