"""The laws of schedules, over many lengths and steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask import InputError, all_at_the_end, block_counts, dream_counts, linear_counts, one_by_one, progressive_counts
from unmask.counts import check_counts

SCHEDULES = [linear_counts, progressive_counts, dream_counts, one_by_one, all_at_the_end]
windows = st.integers(1, 512).flatmap(lambda length: st.tuples(st.just(length), st.integers(1, length)))


@pytest.mark.parametrize("schedule", SCHEDULES)
@given(window=windows)
def test_sums_to_length_over_exactly_the_steps(schedule, window):
    length, steps = window
    counts = schedule(length, steps)
    assert sum(counts) == length
    assert len(counts) == steps
    assert min(counts) >= 0
    check_counts(counts, length)


@pytest.mark.parametrize("schedule", [linear_counts, progressive_counts, one_by_one])
@given(window=windows)
def test_every_step_reveals_something(schedule, window):
    assert min(schedule(*window)) >= 1


@given(window=windows, floor=st.integers(0, 8), power=st.sampled_from([0.0, 0.5, 1.0, 2.0]))
def test_progressive_never_decreases_and_keeps_its_floor(window, floor, power):
    length, steps = window
    if floor * steps > length:
        with pytest.raises(InputError, match=f"use floor<={length // steps}"):
            progressive_counts(length, steps, floor=floor, power=power)
        return
    counts = progressive_counts(length, steps, floor=floor, power=power)
    assert list(counts) == sorted(counts)
    assert counts[0] >= floor


def test_the_papers_progressive_schedule():
    counts = progressive_counts(256, 32)
    assert counts[:6] == (3, 4, 4, 4, 5, 5)
    assert counts[-2:] == (12, 13)


@pytest.mark.parametrize(("steps", "floor"), [(32, 3), (64, 3), (128, 1)])
def test_default_floor_keeps_the_first_count_below_the_uniform_share(steps, floor):
    counts = progressive_counts(256, steps)
    assert counts == progressive_counts(256, steps, floor=floor)
    assert counts[0] < 256 / steps


def test_the_papers_floor_cannot_hold_at_128_steps():
    with pytest.raises(InputError, match="floor=3 over 128 steps needs 384 tokens but the window has 256; use floor<=2"):
        progressive_counts(256, 128, floor=3)


def test_linear_puts_the_remainder_first():
    assert linear_counts(10, 4) == (3, 3, 2, 2)


@pytest.mark.parametrize(
    ("steps", "start", "end"), [(32, (7, 8, 8), 9), (64, (3, 4, 4), 5), (128, (1, 2, 2), 3), (256, (0, 1, 1), 2)]
)
def test_dreams_truncated_counts(steps, start, end):
    counts = dream_counts(256, steps)
    assert counts[:3] == start
    assert counts[-1] == end


def test_blocks_split_the_steps_evenly_and_use_the_inner_schedule():
    assert block_counts(64, 8, block=32) == linear_counts(32, 4) * 2
    assert block_counts(64, 8, block=32, inner=progressive_counts) == progressive_counts(32, 4) * 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: block_counts(256, 32, block=48), "blocks of 48 do not divide a window of 256; use for instance 32, 64"),
        (lambda: block_counts(256, 33, block=32), "33 steps do not split evenly over 8 blocks of 32; use a multiple of 8"),
        (lambda: linear_counts(8, 9), "steps=9 must lie between 1 and the number of tokens to reveal, 8; use steps<=8"),
        (lambda: linear_counts(8, 0), "steps=0"),
        (lambda: progressive_counts(8, 2, power=-1), "power=-1"),
        (lambda: check_counts((2, 2), 5), "counts sum to 4 but the window has 5"),
        (lambda: check_counts((), 5), "counts must be one or more numbers"),
        (lambda: check_counts((-1, 6), 5), "counts must be one or more numbers >= 0"),
    ],
)
def test_what_cannot_fit_is_refused_with_the_fix(call, words):
    with pytest.raises(InputError, match=words):
        call()
