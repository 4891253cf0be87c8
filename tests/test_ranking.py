"""Scores and EOS policies against a full softmax over the vocabulary, in float64."""

import math

import pytest
import torch

from conftest import TableHead, random_view
from unmask import (
    InputError,
    RuleError,
    decode,
    eos_annealed,
    eos_penalized,
    eos_suppressed,
    linear_counts,
    negative_entropy,
    probability_margin,
    raw,
    top1_probability,
    top_by,
)
from unmask.predictions import Predictions

FILL, TURN = 9, 10  # the end tokens of random_view


def scaled(logits, ids, change):
    out = logits.clone()
    for token in ids:
        out[..., token] = change(out[..., token])
    return out


def temperature(view, start=3.0, end=1.0):
    return end + (start - end) * (1 - view.step / int(view.steps[0]))


POLICIES = {
    "raw": (raw, lambda z, view: z),
    "damp": (
        eos_annealed(),
        lambda z, view: scaled(z, [FILL], lambda e: torch.where(e > 0, e / temperature(view), e * temperature(view))),
    ),
    "divide": (eos_annealed(rule="divide"), lambda z, view: scaled(z, [FILL], lambda e: e / temperature(view))),
    "divide both": (
        eos_annealed(start=5.0, end=2.0, rule="divide", ids=[FILL, TURN]),
        lambda z, view: scaled(z, [FILL, TURN], lambda e: e / temperature(view, 5.0, 2.0)),
    ),
    "suppress": (eos_suppressed(), lambda z, view: scaled(z, [FILL, TURN], lambda e: e - torch.inf)),
    "suppress turn": (eos_suppressed([TURN]), lambda z, view: scaled(z, [TURN], lambda e: e - torch.inf)),
    "penalty": (
        eos_penalized(2.0),
        lambda z, view: scaled(
            z, [FILL], lambda e: e + 2.0 * math.log(1 - (1 - 0.999 * (view.step - 1) / int(view.steps[0])) + 1e-3)
        ),
    ),
}  # fmt: skip


def full(view, change):
    """Ranking logits over the whole vocabulary, and the raw argmax."""
    logits = view.predictions.states.double().index_fill(-1, view.predictions.banned, -torch.inf)
    return change(logits, view), logits.argmax(-1)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("step", [1, 2, 4])
def test_scores_equal_a_full_softmax_under_the_policy(name, step):
    rank, change = POLICIES[name]
    for seed in range(4):
        view = random_view(seed, step=step)
        logits, token = full(view, change)
        p = logits.softmax(-1)
        chosen = p.gather(-1, token[..., None])[..., 0]
        others = p.scatter(-1, token[..., None], -1.0).amax(-1)
        stats = rank(view)
        m = view.masked
        assert torch.equal(stats.token[m], token[m])
        assert torch.allclose(top1_probability(view, stats)[m].double(), chosen[m], atol=1e-6)
        assert torch.allclose(probability_margin(view, stats)[m].double(), (chosen - others)[m], atol=1e-6)
        assert torch.allclose(negative_entropy(view, stats)[m].double(), -torch.special.entr(p).sum(-1)[m], atol=2e-5)


def test_power_multiplies_the_log_probability_of_the_end_token():
    view = random_view(0, step=1)
    logits, _ = full(view, lambda z, view: z)
    wanted = temperature(view) * logits.log_softmax(-1)[..., FILL]
    stats = eos_annealed(rule="power")(view)
    assert torch.allclose((stats.ends[..., 0].double() - logits.logsumexp(-1))[view.masked], wanted[view.masked], atol=1e-5)


def test_the_papers_temperature_is_3_minus_2d_over_t():
    for step in (1, 2, 3, 4):
        view = random_view(0, step=step)
        raised = view.masked & (view.stats.ends[..., 0] != 0)
        ratio = (view.stats.ends / eos_annealed(rule="divide")(view).ends)[..., 0][raised]
        assert torch.allclose(ratio, torch.tensor(3 - 2 * step / 4))


@pytest.mark.parametrize("rule", ["damp", "divide", "power"])
def test_annealing_is_the_identity_at_the_last_step(rule):
    view = random_view(1, step=4)
    assert torch.allclose(eos_annealed(rule=rule)(view).ends[view.masked], view.stats.ends[view.masked], atol=1e-5)


def test_damp_never_promotes_the_end_token_and_divide_does_when_its_logit_is_negative():
    view = random_view(2, step=1)
    before = view.stats.ends[..., 0][view.masked]
    assert (eos_annealed()(view).ends[..., 0][view.masked] <= before).all()
    assert (eos_annealed(rule="divide")(view).ends[..., 0][view.masked][before < 0] > before[before < 0]).all()


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_leaves_all_other_predictions_bitwise_alone(name):
    view = random_view(3)
    ranked = POLICIES[name][0](view)
    for field in ("token", "best_id", "best", "second_id", "second", "rest"):
        assert torch.equal(getattr(ranked, field), getattr(view.stats, field))


def test_annealing_changes_the_order_but_not_the_committed_tokens(toy):
    from test_loop import canvas

    view = random_view(0, step=1)
    orders = [top_by(top1_probability, rank=rank)(view).score for rank in (raw, eos_annealed(), eos_suppressed())]
    assert not torch.equal(orders[0], orders[1])
    one_step = [
        decode(toy, canvas(12), counts=linear_counts(12, 1), select=top_by(top1_probability, rank=rank)).window
        for rank in (raw, eos_annealed(start=9.0), eos_suppressed())
    ]
    assert torch.equal(one_step[0], one_step[1])
    assert torch.equal(one_step[0], one_step[2])


def test_no_precision_is_lost_where_the_end_token_is_all_but_certain():
    """The others' mass is summed by itself, so it is not what is left of a subtraction."""
    logits = torch.full((1, 1, 11), -5.0)
    logits[..., 0], logits[..., FILL] = 2.0, 25.0
    view = random_view(0, rows=1, length=0, step=1)
    predictions = Predictions(
        TableHead(11), logits, torch.ones(1, 1, dtype=torch.bool), end_ids=(FILL,), banned=torch.tensor([]).long()
    )
    stats = eos_annealed(start=30.0)(type(view)(**{**vars(view), "predictions": predictions}))
    wanted = scaled(logits.double(), [FILL], lambda e: e / temperature(view, 30.0))
    assert torch.allclose(stats.rest.double(), wanted[..., :FILL].logsumexp(-1).logaddexp(wanted[..., TURN]), atol=1e-6)
    assert torch.allclose(top1_probability(view, stats).double(), wanted.softmax(-1)[..., FILL], rtol=1e-5)


def test_slots_that_are_all_but_certain_are_still_told_apart():
    """In float32 their probability is 1; the odds against them keep their digits, so no tie is made that is not there."""
    gap = torch.linspace(14, 34, 200)  # p from 1 - 1e-6 to 1 - 1e-15
    logits = torch.full((1, 200, 11), 3.0)
    logits[0, :, 4] = 3.0 + gap
    asked = torch.ones(1, 200, dtype=torch.bool)
    stats = Predictions(TableHead(11), logits, asked, end_ids=(FILL, TURN), banned=torch.tensor([8])).stats
    wanted = 1 / (1 + 9 * torch.exp(-gap.double()))
    assert torch.allclose(stats.probability[0], wanted, atol=1e-12)
    assert (stats.probability[0].diff() > 0).all()
    assert (stats.margin[0].diff() > 0).all()


def test_entropy_where_only_end_tokens_are_possible():
    logits = torch.full((1, 1, 11), -torch.inf)
    logits[..., FILL], logits[..., TURN] = 1.0, 1.0
    asked = torch.ones(1, 1, dtype=torch.bool)
    stats = Predictions(TableHead(11), logits, asked, end_ids=(FILL, TURN), banned=torch.tensor([8])).stats
    assert stats.entropy.item() == pytest.approx(math.log(2), abs=1e-6)
    assert stats.probability.item() == pytest.approx(0.5)


def test_logits_outside_the_step_are_refused():
    view = random_view(0)
    with pytest.raises(RuleError, match="stay within view.masked"):
        view.predictions.map_logits(lambda logits, row, slots: logits[:, 0], view.open)


def test_the_default_dtype_of_torch_does_not_matter(toy):
    from test_loop import canvas

    expected = decode(toy, canvas(12), counts=linear_counts(12, 4), select=top_by(probability_margin)).window
    try:
        for dtype in (torch.float64, torch.bfloat16):
            torch.set_default_dtype(dtype)
            found = decode(toy, canvas(12), counts=linear_counts(12, 4), select=top_by(probability_margin)).window
            assert torch.equal(found, expected)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: eos_annealed(rule="dump"), "unknown anneal rule 'dump'; did you mean 'damp'"),
    (lambda: eos_annealed(start=0.0), "EOS temperatures must be positive"),
    (lambda: eos_penalized(-1.0), "penalty=-1.0 must be a number >= 0"),
    (lambda: eos_annealed(ids=[3])(random_view(0)), r"token 3 is not among the end tokens \(9, 10\)"),
    (lambda: eos_annealed()(random_view(0, end_ids=())), "names no end token"),
])  # fmt: skip
def test_bad_input_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()


@pytest.mark.parametrize("end_ids", [(), (9,), (10, 9, 0)])
def test_any_set_of_end_tokens_gives_the_same_raw_scores(end_ids):
    view, other = random_view(5), random_view(5, end_ids=end_ids)
    for score in (top1_probability, probability_margin, negative_entropy):
        mine, theirs = score(other, other.stats), score(view, view.stats)
        assert torch.allclose(mine[view.masked], theirs[view.masked], atol=1e-5)
    assert torch.equal(view.stats.token[view.masked], other.stats.token[view.masked])
