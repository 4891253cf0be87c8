"""Rules from other decoders, against their formulas written out one row and one slot at a time."""

import math

import pytest
import torch

from conftest import random_view
from unmask import (
    InputError,
    above,
    by_factor,
    entropy_bounded,
    near_known,
    origin,
    position_and_content,
    self_planned,
    stable,
    token_frequencies,
    top1_probability,
    top_by,
)
from unmask.counts import dream_share

SEEDS = range(8)


def alone(view):
    """The same view asking for one slot a row, as the published rules do."""
    return view.among(view.masked, torch.ones_like(view.count), view.start)


def rows_of(view):
    """For each row: its masked slots, and the full distributions there in float64."""
    logits = view.predictions.states.double().index_fill(-1, view.predictions.banned, -torch.inf)
    for row in range(len(view.masked)):
        slots = view.masked[row].nonzero()[:, 0].tolist()
        yield row, slots, {slot: logits[row, slot].softmax(-1) for slot in slots}


def sorted_slots(slots, score):
    return sorted(slots, key=lambda slot: (-round(float(score[slot]), 5), slot))


def revealed(choice, row):
    return set(choice.reveal[row].nonzero()[:, 0].tolist())


def test_threshold_takes_the_best_and_all_that_reach_it():
    for seed in SEEDS:
        view = alone(random_view(seed, ties=False))
        choice = above(0.5)(view)
        for row, slots, p in rows_of(view):
            best = sorted_slots(slots, {slot: p[slot].max() for slot in slots})[0]
            assert revealed(choice, row) == {best} | {slot for slot in slots if p[slot].max() >= 0.5}


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.5])
def test_factor_accepts_the_nth_while_it_is_at_least_1_minus_f_over_n_plus_1(factor):
    for seed in SEEDS:
        view = alone(random_view(seed, ties=False))
        choice = by_factor(factor)(view)
        for row, slots, p in rows_of(view):
            order = sorted_slots(slots, {slot: p[slot].max() for slot in slots})
            wanted = [order[0]]
            for number, slot in enumerate(order[1:], start=2):
                if p[slot].max() < 1 - factor / (number + 1):
                    break
                wanted.append(slot)
            assert revealed(choice, row) == set(wanted)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0])
def test_eb_sampler_bounds_the_sum_of_entropies_without_the_largest(gamma):
    for seed in SEEDS:
        view = alone(random_view(seed, ties=False))
        choice = entropy_bounded(gamma)(view)
        for row, slots, p in rows_of(view):
            entropy = {slot: float(torch.special.entr(p[slot]).sum()) for slot in slots}
            order = sorted_slots(slots, {slot: -entropy[slot] for slot in slots})
            most = 1
            for k in range(1, len(order) + 1):
                taken = [entropy[slot] for slot in order[:k]]
                if sum(taken) - max(taken) <= gamma:
                    most = k
            assert revealed(choice, row) == set(order[:most])


@pytest.mark.parametrize("history", [1, 2])
def test_klass_takes_what_is_sure_and_has_stopped_moving(history):
    for seed in SEEDS:
        view = alone(random_view(seed, ties=False))
        choice = stable(0.3, 0.02, history=history)(view)
        chain = [view.predictions, view.predictions.previous, view.predictions.previous.previous]
        for row, slots, p in rows_of(view):
            best = sorted_slots(slots, {slot: p[slot].max() for slot in slots})[0]
            ready = set()
            for slot in slots:
                now, before, earlier = (
                    step.states[row, slot].double().index_fill(0, view.predictions.banned, -torch.inf).softmax(-1)
                    for step in chain
                )
                moved = [
                    float((a * ((a + 1e-12).log() - (b + 1e-12).log())).sum()) for a, b in ((now, before), (before, earlier))
                ]
                if p[slot].max() > 0.3 and all(kl < 0.02 for kl in moved[:history]):
                    ready.add(slot)
            assert revealed(choice, row) == (ready | {best})


def test_klass_is_never_ready_before_it_has_a_history():
    view = alone(random_view(0, step=1))
    view.predictions.previous = None
    assert (stable(0.0, 100.0)(view).reveal.sum(1) == 1).all()


@pytest.mark.parametrize(("width", "reach"), [(1, 0), (3, 1), (4, 2), (5, 2)])
def test_convolution_counts_known_tokens_around_the_slot(width, reach):
    for seed in SEEDS:
        view = random_view(seed, ties=False)
        scores = top_by(near_known(top1_probability, width=width, slope=0.5))(view).score
        for row, slots, p in rows_of(view):
            masked_places = {int(view.slots[row, slot]) for slot in slots}
            for slot in slots:
                place = int(view.slots[row, slot])
                around = range(max(0, place - reach), min(int(view.lengths[row]), place + reach + 1))
                known = sum(at not in masked_places for at in around)
                assert scores[row, slot].item() == pytest.approx(float(p[slot].max()) * math.tanh(0.5 * known), abs=1e-5)


def test_pc_sampler_weighs_position_and_rarity():
    counts = {0: 50, 1: 30, 2: 0, 5: 20}
    frequency = {token: counts.get(token, 0) / 100 or 1 / 100 for token in range(11)}
    for seed in SEEDS:
        view = random_view(seed, ties=False)
        scores = top_by(position_and_content(token_frequencies(counts, 11), decay=0.3, cap=0.9))(view).score
        for row, slots, p in rows_of(view):
            for slot in slots:
                best, token = p[slot].max(-1)
                content = min(-float(best) * math.log(frequency[int(token)] + 1e-9), 0.9)
                assert scores[row, slot].item() == pytest.approx(math.exp(-0.3 * slot) * content, abs=1e-5)


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_p2_masks_the_least_sure_of_all_open_slots_again(step):
    for seed in SEEDS:
        view = random_view(seed, ties=False, step=step)
        choice = self_planned()(view)
        logits = view.predictions.states.double().index_fill(-1, view.predictions.banned, -torch.inf)
        for row in range(len(view.masked)):
            slots = view.open[row].nonzero()[:, 0].tolist()
            sure = {slot: logits[row, slot].softmax(-1).max() for slot in slots}
            number = math.floor(len(slots) * (4 - step) / 4)
            least = set(sorted_slots(slots, sure)[len(slots) - number :])
            masked = set(view.masked[row].nonzero()[:, 0].tolist())
            assert revealed(choice, row) == masked - least
            assert set(choice.hide[row].nonzero()[:, 0].tolist()) == least - masked


def test_origin_reveals_with_probability_1_minus_s_over_t():
    found, trials = 0, 0
    for seed in range(60):
        view = random_view(seed, length=40, step=2, steps=4, most=1)
        view = view.among(view.masked, torch.zeros_like(view.count), view.start)
        found += int(origin()(view).reveal.sum())
        trials += int(view.masked.sum())
    share = float(dream_share(2, 4))
    assert abs(found / trials - share) < 4 * math.sqrt(share * (1 - share) / trials)  # four standard deviations
    last = random_view(0, step=4, steps=4)
    assert torch.equal(origin()(last).reveal, last.masked)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: by_factor(0.0), "factor=0.0 must be greater than 0"),
    (lambda: entropy_bounded(-0.1), "gamma=-0.1 must be at least 0"),
    (lambda: stable(0.5, 0.1, history=3), "history=3 must be 1 or 2"),
    (lambda: near_known(top1_probability, width=0), "width=0 must lie between 1 and 1000000"),
    (lambda: token_frequencies({11: 3}, 11), "token 11 has count 3; ids must lie in 0..10"),
    (lambda: token_frequencies({}, 11), "no token was counted"),
])  # fmt: skip
def test_bad_input_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()
