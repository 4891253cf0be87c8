"""Counter-based randomness: a number depends on what it is for, and on nothing else."""

import torch

from unmask.rng import Stream, gumbel, mix, row_keys, subkey, uniform


def test_keys_do_not_depend_on_the_batch():
    together = row_keys([3, 5, (5, 1), 9])
    assert [int(row_keys([seed])[0]) for seed in (3, 5, (5, 1), 9)] == together.tolist()
    assert len(set(together.tolist())) == 4


def test_a_seed_is_its_first_sample():
    assert torch.equal(row_keys([5]), row_keys([(5, 0)]))


def test_known_values():
    """SplitMix64's published stream for seed 0 (its first outputs), so that every platform draws the same."""
    states = [(step * 0x9E3779B97F4A7C15) % (1 << 64) for step in (1, 2)]
    signed = torch.tensor([state - (1 << 64) if state >> 63 else state for state in states])
    assert [number % (1 << 64) for number in mix(signed).tolist()] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]


def test_uniform_and_gumbel_have_their_moments():
    key = subkey(row_keys([1])[:, None], 3, int(Stream.TOKEN), torch.arange(200_000))
    u, g = uniform(key), gumbel(key).double()
    assert ((u >= 0) & (u < 1)).all()
    assert abs(u.mean() - 0.5) < 0.003
    assert abs(u.var() - 1 / 12) < 0.001
    assert abs(g.mean() - 0.5772) < 0.015
    assert abs(g.var() - torch.pi**2 / 6) < 0.05
    assert torch.isfinite(g).all()


def test_streams_steps_positions_and_tokens_are_independent():
    base = row_keys([4])
    draws = torch.stack([
        uniform(subkey(base, step, stream, torch.arange(5000))) for step in (1, 2) for stream in (1, 2)
    ])  # fmt: skip
    correlation = torch.corrcoef(draws) - torch.eye(4)
    assert correlation.abs().max() < 0.06


def test_the_ends_of_the_range():
    ends = torch.tensor([0, -1, (1 << 63) - 1, -(1 << 63)])
    assert (uniform(ends) < 1).all()
    assert not gumbel(ends).isnan().any()
    assert gumbel(torch.tensor([-1])) > -4  # a uniform number that rounds to 1 would give minus infinity
