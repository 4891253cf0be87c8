"""The loop's promises."""

import itertools

import pytest
import torch

from conftest import SPECIALS
from laws.test_selectors import ADAPTIVE, ALL, EXACT, REMASKING
from unmask import (
    OPEN,
    Canvas,
    InputError,
    RuleError,
    ToyBackbone,
    all_at_the_end,
    at_step,
    decode,
    decode_steps,
    fixed,
    in_blocks,
    linear_counts,
    one_by_one,
    progressive_counts,
    sampled,
    top1_probability,
    top_by,
    uniform,
)
from unmask.view import Choice

TOP1 = top_by(top1_probability)


class Counting(ToyBackbone):
    """A toy that counts its passes."""

    passes = 0

    def encode(self, tokens, lengths, slots):
        self.passes += 1
        return super().encode(tokens, lengths, slots)


def canvas(*holes, seeds=None):
    return Canvas.of([[5, 6, 7][: 1 + index % 3] + [OPEN] * number for index, number in enumerate(holes)], seeds=seeds)


WHOLE = [
    name for name in EXACT if name.startswith(("top1 raw", "margin annealed", "uniform", "first", "published top1", "conv raw"))
]
WHOLE += [*ADAPTIVE, *REMASKING]
OWN_VOCABULARY = [name for name in EXACT if name.startswith("pc") or "fill" in name]  # they name ids of the views' vocabulary


@pytest.mark.parametrize("pick", [None, sampled(0.8)], ids=["greedy", "sampled"])
@pytest.mark.parametrize("name", WHOLE)
def test_every_rule_decodes_a_ragged_batch(name, pick):
    start = canvas(9, 12, 4, seeds=[3, 1, 4])
    schedule = (
        all_at_the_end if name in REMASKING or name == "origin" else one_by_one if name in ADAPTIVE else progressive_counts
    )
    counts = [schedule(holes, min(4, holes)) for holes in start.holes]
    options = {} if pick is None else {"pick": pick}
    toy, before, seen = ToyBackbone(), start.masked(95), torch.zeros_like(start.open)
    for step in decode_steps(toy, start, counts=counts, select=ALL[name], **options):
        was_masked = start.open & (before == toy.mask_id)
        assert not (step.choice.reveal & ~was_masked).any()
        if name not in REMASKING:  # a revealed token never changes, and nothing is revealed twice
            assert not (step.choice.reveal & seen).any()
            assert torch.equal(step.window[~step.choice.reveal], before[~step.choice.reveal])
        assert (step.window[step.choice.reveal] != toy.mask_id).all()
        seen, before = seen | step.choice.reveal, step.window
    assert not (start.open & (before == toy.mask_id)).any(), "masks remain after the last step"
    whole = start.filled(before)
    for row, length in enumerate(start.lengths):
        fixed_text = [at for at in range(length) if at not in start.slots[row, start.open[row]].tolist()]
        assert torch.equal(whole[row, fixed_text], start.tokens[row, fixed_text])


@pytest.mark.parametrize("name", [name for name in EXACT if name not in OWN_VOCABULARY])
def test_exact_rules_take_exactly_their_steps(name):
    toy = Counting()
    done = decode(toy, canvas(12), counts=linear_counts(12, 5), select=EXACT[name])
    assert done.forwards == (5,)
    assert toy.passes == 5


def test_adaptive_rules_stop_early_and_report_their_passes():
    toy = Counting()
    done = decode(toy, canvas(24), counts=one_by_one(24, 24), select=ADAPTIVE["threshold"])
    assert done.forwards == (toy.passes,)
    assert toy.passes < 24


def test_finished_rows_are_not_encoded_again():
    toy = Counting()
    start = canvas(4, 16, seeds=[1, 2])
    done = decode(toy, start, counts=[linear_counts(4, 2), linear_counts(16, 8)], select=TOP1)
    assert done.forwards == (2, 8)
    assert toy.passes == 2 + 8


def test_equal_canvases_share_a_pass():
    toy = Counting()
    start = Canvas.of([[5] + [OPEN] * 8] * 6, seeds=[(0, sample) for sample in range(6)])
    steps = decode_steps(toy, start, counts=linear_counts(8, 4), select=uniform())
    next(steps)
    assert toy.passes == 1


def test_the_canvas_is_left_as_it_was():
    start = canvas(6, 9)
    kept = [start.tokens.clone(), start.slots.clone(), start.open.clone(), start.keys.clone()]
    decode(ToyBackbone(), start, counts=[linear_counts(6, 3), linear_counts(9, 3)], select=TOP1)
    for now, then in zip([start.tokens, start.slots, start.open, start.keys], kept, strict=True):
        assert torch.equal(now, then)


def test_decode_equals_the_last_of_decode_steps():
    start = canvas(9)
    *_, last = decode_steps(ToyBackbone(), start, counts=linear_counts(9, 4), select=TOP1)
    assert torch.equal(decode(ToyBackbone(), start, counts=linear_counts(9, 4), select=TOP1).window, last.window)


def test_fixed_positions_replay_the_start_of_a_decode():
    start, counts = canvas(12), linear_counts(12, 6)
    steps = list(decode_steps(ToyBackbone(), start, counts=counts, select=uniform()))
    first, second = (step.choice.reveal[0].nonzero()[:, 0].tolist() for step in steps[:2])
    anchored = at_step(1, fixed(first), otherwise=at_step(2, fixed([second]), otherwise=TOP1))
    again = list(itertools.islice(decode_steps(ToyBackbone(), start, counts=counts, select=anchored), 2))
    assert torch.equal(again[1].window, steps[1].window)


def test_blocks_are_filled_from_left_to_right():
    start = canvas(12)
    for step in decode_steps(ToyBackbone(), start, counts=linear_counts(12, 12), select=in_blocks(4, TOP1)):
        assert step.choice.reveal[0].nonzero().item() // 4 == (step.step - 1) // 4


def test_a_block_as_long_as_the_window_changes_nothing():
    start, counts = canvas(12), linear_counts(12, 5)
    plain = decode(ToyBackbone(), start, counts=counts, select=TOP1)
    assert torch.equal(plain.window, decode(ToyBackbone(), start, counts=counts, select=in_blocks(12, TOP1)).window)


def test_holes_anywhere_are_one_canvas():
    toy = ToyBackbone()
    row = [*toy.ids("a"), OPEN, OPEN, *toy.ids("bc"), OPEN, *toy.ids("d")]
    done = decode(toy, Canvas.of([row]), counts=linear_counts(3, 3), select=TOP1)
    kept = [token for token, place in zip(done.tokens[0].tolist(), row, strict=True) if place != OPEN]
    assert kept == [token for token in row if token != OPEN]
    assert toy.mask_id not in done.tokens[0].tolist()


def test_banned_tokens_are_never_committed(transformer):
    start = Canvas.of([[1, 2] + [OPEN] * 20])
    free = decode(transformer, start, counts=linear_counts(20, 20), select=TOP1, banned=())
    often = free.window[0].mode().values.item()
    done = decode(transformer, start, counts=linear_counts(20, 20), select=TOP1, banned=[often, 190])
    assert often in free.window[0]
    assert often not in done.window[0]


def test_the_fused_batch_agrees_where_no_decision_is_close(transformer):
    rows = [[1, 2, 3] + [OPEN] * 12, [9] + [OPEN] * 7, [4, 4] + [OPEN] * 10]
    start = Canvas.of(rows)
    counts = [linear_counts(holes, 4) for holes in start.holes]
    exact = decode(transformer, start, counts=counts, select=TOP1)
    fused = decode(transformer, start, counts=counts, select=TOP1, fused=True)
    assert torch.equal(exact.tokens, fused.tokens)  # seeds are chosen so: the last bits do differ


@pytest.mark.parametrize("first", [uniform(), TOP1, ADAPTIVE["threshold"]])
def test_a_rule_with_a_history_may_start_late(first):
    """KLASS asks for the divergence of a step that another rule ruled."""
    for step in (1, 2, 3):
        select = at_step(step, first, otherwise=ADAPTIVE["klass"])
        decode(ToyBackbone(), canvas(12, 9), counts=[one_by_one(12, 12), one_by_one(9, 9)], select=select)


def test_a_row_stops_after_its_own_steps_whatever_its_neighbours_do():
    """Without bans a model may write masks, and a row may end with some."""

    class LovesMasks(ToyBackbone):
        def encode(self, tokens, lengths, slots):
            logits = super().encode(tokens, lengths, slots)
            logits[..., self.mask_id] = 5.0
            return logits

    def run(rows, counts):
        done = decode(LovesMasks(), Canvas.of(rows), counts=counts, select=TOP1, banned=())
        return done.window[0, :4].tolist(), done.forwards[0]

    short, long = [7] + [OPEN] * 4, [8] + [OPEN] * 9
    assert run([short], [(4,)]) == run([short, long], [(4,), (1,) * 9])
    assert run([short], [(4,)])[1] == 1


class TestARuleThatBreaksItsPromise:
    def test_too_few(self):
        lazy = lambda view: Choice(torch.zeros_like(view.masked))  # noqa: E731
        with pytest.raises(RuleError, match="revealed 0 slots in row 0 at step 1, but the step asks for at least 3"):
            decode(ToyBackbone(), canvas(6), counts=(3, 3), select=lazy)

    def test_not_masked(self):
        greedy_rule = lambda view: Choice(view.open | True)  # noqa: E731
        with pytest.raises(RuleError, match="revealed or hid slot 4 of row 0 at step 1, which it may not"):
            decode(ToyBackbone(), canvas(4, 6), counts=[(4,), (6,)], select=greedy_rule)

    def test_hiding_what_it_reveals(self):
        both = lambda view: Choice(view.masked, hide=view.masked)  # noqa: E731
        with pytest.raises(RuleError, match="revealed or hid slot 0"):
            decode(ToyBackbone(), canvas(4), counts=(4,), select=both)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: decode(ToyBackbone(), canvas(6), counts=(3, 2), select=TOP1), "counts sum to 5 but the window has 6"),
    (lambda: decode(ToyBackbone(), canvas(6, 4), counts=(3, 3), select=TOP1), "counts sum to 6 but the window has 4"),
    (lambda: decode(ToyBackbone(), canvas(6), counts=[(6,), (6,)], select=TOP1), "counts for 2 rows, but the canvas has 1"),
    (lambda: Canvas.of([]), "at least one row"),
    (lambda: Canvas.of([[1, 2]]), "row 0 has no open slot"),
    (lambda: Canvas.of([[OPEN]], seeds=[1, 2]), "2 seeds for 1 rows"),
    (lambda: decode(ToyBackbone(), canvas(6), counts=(6,), select=fixed([7])), "slot 7 of row 0 is not masked"),
    (lambda: decode(ToyBackbone(), canvas(6), counts=(6,), select=fixed([[0], [1]])), "positions for 2 rows"),
    (lambda: Canvas.of([[-5, OPEN]]), "row 0 holds token -5"),
    (lambda: decode(ToyBackbone(), Canvas.of([[500, OPEN]]), counts=(1,), select=TOP1), "token 500 is not in the model's"),
    (lambda: decode(ToyBackbone(), canvas(5000), counts=(5000,), select=TOP1), "5001 positions but the model takes 4096"),
    (lambda: at_step(0, TOP1, otherwise=TOP1), "steps count from 1"),
    (lambda: in_blocks(0, TOP1), "size=0 must be at least 1"),
])  # fmt: skip
def test_bad_input_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_specials_are_known(transformer):
    assert transformer.end_ids == (180, SPECIALS["<|eot_id|>"])
