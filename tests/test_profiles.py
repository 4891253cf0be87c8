"""Under a profile, tokens are those of the published program, one for one.

A behaviour lock: a change here is a change of what users moving over rely on, and needs a decision.
"""

import pytest
import torch

from conftest import SPECIALS, write_checkpoint
from published import dream, llada
from unmask import OPEN, Canvas, InputError, Settings, decode, load, load_backbone
from unmask.profiles import PROFILES
from unmask.settings import build_strategy

LENGTH, MASK = 32, 190


@pytest.fixture(scope="module", params=range(2))
def llada_model(request, tmp_path_factory):
    return load_backbone(write_checkpoint(tmp_path_factory.mktemp("l"), "llada", seed=request.param), specials=SPECIALS)


@pytest.fixture(scope="module", params=range(2))
def dream_model(request, tmp_path_factory):
    return load_backbone(write_checkpoint(tmp_path_factory.mktemp("d"), "dream", seed=request.param), specials=SPECIALS)


def all_logits(model):
    return lambda tokens: model.head(model.encode(tokens, [tokens.shape[1]], torch.arange(tokens.shape[1])[None])[0])[None]


def prompts():
    generator = torch.Generator().manual_seed(8)
    return [torch.randint(0, 180, (1, size), generator=generator) for size in (1, 18)]


def ours(model, prompt, **settings):
    strategy = build_strategy(Settings(length=LENGTH, **settings), vocab_size=200, end_ids=model.end_ids, dtype=torch.float32)
    canvas = Canvas.of([prompt[0].tolist() + [OPEN] * LENGTH])
    banned = None if strategy.profile.bans else ()
    counts = strategy.counts(LENGTH)
    return decode(model, canvas, counts=counts, select=strategy.select, pick=strategy.pick, banned=banned).tokens


@pytest.mark.parametrize(("steps", "block"), [(32, 32), (8, 32), (12, 32), (32, 8), (16, 16), (8, 4)])
@pytest.mark.parametrize(("profile", "dtype"), [("llada", None), ("llada-2025-02", torch.float64), ("d1", torch.float32)])
def test_llada_tokens(llada_model, profile, dtype, steps, block):
    for prompt in prompts():
        theirs = llada(all_logits(llada_model), prompt, length=LENGTH, steps=steps, block=block, mask_id=MASK, dtype=dtype)
        blocks = None if block == LENGTH else block
        assert torch.equal(ours(llada_model, prompt, profile=profile, steps=steps, blocks=blocks), theirs)


@pytest.mark.parametrize(("steps", "block"), [(32, 32), (8, 32), (16, 8)])
def test_llada_tokens_with_end_tokens_suppressed(llada_model, steps, block):
    for prompt in prompts():
        theirs = llada(all_logits(llada_model), prompt, length=LENGTH, steps=steps, block=block, mask_id=MASK, eos=180, eot=181)
        blocks = None if block == LENGTH else block
        assert torch.equal(ours(llada_model, prompt, profile="llada", eos="suppress", steps=steps, blocks=blocks), theirs)


@pytest.mark.parametrize("steps", [32, 16, 12, 5])
@pytest.mark.parametrize("order", ["top1", "margin", "entropy"])
@pytest.mark.parametrize("cut", [{}, {"top_p": 0.9}, {"top_k": 7}, {"top_p": 0.8, "top_k": 5}], ids=str)
def test_dream_tokens(dream_model, order, steps, cut):
    for prompt in prompts():
        theirs = dream(all_logits(dream_model), prompt, length=LENGTH, steps=steps, measure=order, mask_id=MASK, **cut)
        assert torch.equal(ours(dream_model, prompt, profile="dream", order=order, steps=steps, **cut), theirs)


def test_the_profiles_differ_where_the_programs_do(llada_model):
    """Otherwise the tests above could not tell them apart."""
    prompt = prompts()[1]
    assert not torch.equal(
        ours(llada_model, prompt, profile="llada", steps=12), ours(llada_model, prompt, profile="dream", order="top1", steps=12)
    )


def test_d1_attends_to_its_left_padding():
    toy = load("toy")
    long, short = "A much longer prompt", "Short"
    alone = toy.generate(short, profile="d1", length=16, steps=4, record=False)
    beside = toy.generate([long, short], profile="d1", length=16, steps=4, record=False)[1]
    in_turn = toy.generate([long, short], profile="d1", length=16, steps=4, record=False, batch=1)[1]
    assert in_turn.tokens == alone.tokens  # padding is that of the batch
    ours_alone, ours_beside = (toy.generate(prompts, length=16, steps=4) for prompts in (short, [long, short]))
    assert beside.prompt_tokens == len(long) != alone.prompt_tokens
    assert ours_alone.tokens == ours_beside[1].tokens


def test_other_names_for_orders():
    toy = load("toy")
    for theirs, name in (("low_confidence", "top1"), ("maskgit_plus", "top1"), ("topk_margin", "margin")):
        assert toy.prepare("Hi", order=theirs).strategy.settings.order == name
        assert toy.prepare("Hi", first=theirs).strategy.settings.first == theirs


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_decodes_with_its_defaults(name):
    assert load("toy").generate("Hello", profile=name, length=32, steps=8).nfe == 8


def test_a_policy_that_the_published_program_lacks_is_refused():
    with pytest.raises(InputError, match="profile 'llada' has no EOS policy 'anneal'"):
        load("toy").generate("Hello", profile="llada", eos="anneal:3")
