"""The laws that every selection rule keeps.

A new rule joins by one line: a score in SCORES, another rule in EXACT or ADAPTIVE.
"""

import pytest
import torch

from conftest import one_row, random_view
from unmask import (
    above,
    at_step,
    by_factor,
    entropy_bounded,
    eos_annealed,
    eos_penalized,
    eos_suppressed,
    in_blocks,
    near_known,
    negative_entropy,
    origin,
    perturbed,
    position_and_content,
    probability_margin,
    raw,
    sampled,
    self_planned,
    stable,
    token_frequencies,
    top1_probability,
    top_by,
    uniform,
)
from unmask.profiles import PROFILES, published_order

SCORES = {
    "top1": top1_probability,
    "margin": probability_margin,
    "entropy": negative_entropy,
    "conv": near_known(top1_probability, width=5),
    "conv of margin": near_known(probability_margin, width=4, slope=0.5),
    "pc": position_and_content(token_frequencies({0: 3, 1: 1}, 11)),
    "perturbed margin": perturbed(probability_margin, 0.5),
}
RANKS = {
    "raw": raw,
    "annealed": eos_annealed(),
    "annealed by division": eos_annealed(rule="divide"),
    "annealed by power": eos_annealed(rule="power"),
    "suppressed": eos_suppressed(),
    "suppressed fill": eos_suppressed([9]),
    "penalized": eos_penalized(3.0),
}
EXACT = {f"{score} {rank}": top_by(SCORES[score], rank=RANKS[rank]) for score in SCORES for rank in RANKS}
EXACT |= {
    "uniform": uniform(),
    "first uniform": at_step(1, uniform(), otherwise=top_by(top1_probability)),
    "then uniform": at_step(2, uniform(), otherwise=top_by(top1_probability)),
}
EXACT |= {
    f"{name} in blocks of {size}": in_blocks(size, EXACT[name])
    for name in ("top1 raw", "margin annealed", "uniform")
    for size in (1, 4, 7, 100)
}
EXACT |= {
    f"published {measure} {name}": published_order(measure, pick=sampled(0.7), profile=PROFILES[name], dtype=torch.float32)
    for measure in ("top1", "margin", "entropy") for name in ("llada", "llada-2025-02", "d1", "dream")
}  # fmt: skip
ADAPTIVE = {
    "threshold": above(0.5),
    "threshold annealed": above(0.5, rank=eos_annealed()),
    "margin threshold": above(0.3, probability_margin),
    "factor": by_factor(1.0),
    "eb": entropy_bounded(1.0),
    "eb suppressed": entropy_bounded(1.0, rank=eos_suppressed()),
    "klass": stable(0.3, 0.05),
    "klass short": stable(0.3, 0.05, history=1),
    "origin": origin(),
    "threshold in blocks": in_blocks(4, above(0.5)),
    "eb in blocks": in_blocks(3, entropy_bounded(2.0)),
}
REMASKING = {"p2": self_planned(), "p2 sampled": self_planned(sampled(0.9))}
ALL = EXACT | ADAPTIVE | REMASKING
SEEDS = range(6)


@pytest.mark.parametrize("name", EXACT)
def test_reveals_exactly_count_positions_per_row(name):
    for seed in SEEDS:
        view = random_view(seed)
        assert EXACT[name](view).reveal.sum(1).tolist() == view.count.tolist()


@pytest.mark.parametrize("name", ADAPTIVE)
def test_adaptive_rules_reveal_at_least_count_positions_per_row(name):
    more = 0
    for seed in SEEDS:
        view = random_view(seed)
        found = ADAPTIVE[name](view).reveal.sum(1)
        assert (found >= view.count).all()
        more += int((found - view.count).sum())
    assert more > 0, "this adaptive rule never revealed more than it had to: the test sees nothing of it"


@pytest.mark.parametrize("name", ALL)
def test_reveals_only_masked_positions(name):
    for seed in SEEDS:
        view = random_view(seed)
        choice = ALL[name](view)
        assert not (choice.reveal & ~view.masked).any()
        if choice.hide is not None:
            assert not (choice.hide & (view.masked | ~view.open)).any()


@pytest.mark.parametrize("name", ALL)
def test_rows_do_not_influence_each_other(name):
    for seed in SEEDS:
        view = random_view(seed)
        together = ALL[name](view)
        for row in range(len(view.masked)):
            alone = ALL[name](one_row(view, row))
            width = alone.reveal.shape[1]
            assert torch.equal(alone.reveal[0], together.reveal[row, :width])
            if together.hide is not None:
                assert torch.equal(alone.hide[0], together.hide[row, :width])


@pytest.mark.parametrize("name", ALL)
def test_same_view_same_positions(name):
    assert torch.equal(ALL[name](random_view(3)).reveal, ALL[name](random_view(3)).reveal)


@pytest.mark.parametrize("name", ALL)
def test_does_not_modify_the_view(name):
    view, fresh = random_view(4), random_view(4)
    ALL[name](view)
    for field in ("steps", "count", "masked", "window", "slots", "open", "keys", "lengths", "start"):
        assert torch.equal(getattr(view, field), getattr(fresh, field)), field
    assert torch.equal(view.predictions.states, fresh.predictions.states)
    for field in ("token", "best", "second", "rest", "ends"):
        assert torch.equal(getattr(view.stats, field), getattr(fresh.stats, field)), field


@pytest.mark.parametrize("name", REMASKING)
def test_what_masks_again_ends_with_the_scheduled_number_of_masks(name):
    for seed in SEEDS:
        view = random_view(seed, step=3, steps=4)
        choice = REMASKING[name](view)
        masked_after = (view.masked & ~choice.reveal) | choice.hide
        assert masked_after.sum(1).tolist() == (view.open.sum(1) * (4 - 3) // 4).tolist()


def test_ties_go_to_the_lowest_position():
    view = random_view(0)
    flat = top_by(lambda view, stats: torch.zeros(view.masked.shape))(view)
    for row in range(len(view.masked)):
        masked = view.masked[row].nonzero()[:, 0]
        assert flat.reveal[row].nonzero()[:, 0].tolist() == masked[: view.count[row]].tolist()


def test_masked_positions_at_minus_infinity_still_come_before_all_others():
    view = random_view(1)
    choice = top_by(lambda view, stats: torch.full(view.masked.shape, -torch.inf))(view)
    assert choice.reveal.sum(1).tolist() == view.count.tolist()
    assert not (choice.reveal & ~view.masked).any()
