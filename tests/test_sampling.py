import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tadropedge import TadropedgeError, sample_directed, sample_edges
from tadropedge.sampling import key, key_tensor, mix, mix_tensor, signed

HALF = torch.full((20_000,), 0.5, dtype=torch.float64)


def correlation(one, other):
    """The correlation of two masks of fair coins; its standard error is one over the root of the length."""
    return float(((one.double() - 0.5) * (other.double() - 0.5)).mean() * 4)


def reference(count, prob, seed, epoch):
    """The documented coin in exact Python integers: SplitMix64 words, an odd multiplier, an offset, 53 bits."""
    golden, mask = 0x9E3779B97F4A7C15, 2**64 - 1
    state = mix((mix((seed + golden) & mask) + epoch * golden) & mask)
    a, b = mix((state + golden) & mask) | 1, mix((state + 2 * golden) & mask)
    words = [mix((place + 1) * golden & mask) for place in range(count)]
    # Read as a signed number, as int64 tensors do, the upper 53 bits lie in [−2⁵², 2⁵²).
    coins = [signed((a * word + b) & mask) >> 11 for word in words]
    return [coin < (p - 0.5) * 2**53 for coin, p in zip(coins, prob, strict=True)]


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 10**6), st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_against_exact_integers(seed, epoch, prob):
    ours = sample_edges(torch.tensor(prob, dtype=torch.float64), seed, epoch)
    assert ours.tolist() == reference(len(prob), prob, seed, epoch)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=9), st.integers(0, 2**40))
def test_tensor_arithmetic_is_the_integer_arithmetic(words, epoch):
    tensor = torch.tensor([signed(word) for word in words])
    assert mix_tensor(tensor).tolist() == [signed(mix(word)) for word in words]
    multiplier, offset = key_tensor(tensor, torch.tensor(epoch))
    assert list(zip(multiplier.tolist(), offset.tolist(), strict=True)) == [key(signed(w), epoch) for w in words]
    assert all(value % 2 == 1 for value in multiplier.tolist())


def test_literal_bits_never_change():
    """A published result can be drawn again: these bits are part of the interface."""
    mask = sample_edges(torch.full((16,), 0.5, dtype=torch.float64), seed=2024, epoch=7)
    assert "".join("01"[bit] for bit in mask.tolist()) == "1110001010111001"


def test_same_bits_on_every_device_and_in_every_batch(device):
    generator = torch.Generator().manual_seed(0)
    prob = torch.rand(3, 5000, generator=generator, dtype=torch.float64)
    seeds = [5, 0, -9]
    alone = torch.stack([sample_edges(row, seed, 4) for row, seed in zip(prob, seeds, strict=True)])
    assert torch.equal(sample_edges(prob.to(device), seeds, 4).cpu(), alone)
    assert torch.equal(sample_edges(prob.to(device), torch.tensor(seeds), 4).cpu(), alone)
    assert torch.equal(sample_edges(prob[1].to(device), seeds, 4).cpu()[1], alone[1])
    assert torch.equal(sample_edges(prob, seeds[0], 4)[0], alone[0])


def test_no_global_state():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one = sample_edges(HALF, 3, 3)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    np.random.seed(5)  # noqa: NPY002
    assert torch.equal(sample_edges(HALF, 3, 3), one)


def test_certain_edges():
    prob = torch.tensor([0.0, 1.0] * 50, dtype=torch.float64)
    masks = sample_edges(prob, seed=list(range(500)))
    assert not masks[:, ::2].any()
    assert masks[:, 1::2].all()


def test_frequencies_follow_the_probabilities():
    prob = torch.linspace(0, 1, 101, dtype=torch.float64)
    draws = 20_000
    frequency = sample_edges(prob, seed=list(range(draws)), epoch=2).double().mean(dim=0)
    error = (frequency - prob) / (prob * (1 - prob) / draws).sqrt().clamp_min(1e-12)
    assert float(error.abs().max()) < 4.5
    assert stats.kstest(error[1:-1].numpy(), "norm").pvalue > 1e-3


def test_kept_counts_are_binomial():
    """Independent across edges: the number of kept edges has the variance of independent coins."""
    prob = torch.full((1000,), 0.3, dtype=torch.float64)
    counts = sample_edges(prob, seed=list(range(4000)), epoch=1).sum(dim=1).numpy()
    assert abs(counts.mean() - 300) < 4 * np.sqrt(210 / 4000)
    assert counts.var() == pytest.approx(210, rel=0.1)


def test_independence_across_edges_epochs_and_seeds():
    limit = 4.5 / np.sqrt(len(HALF))
    base = sample_edges(HALF, 0, 0)
    for lag in (1, 2, 3, 64, 4096):  # neighbours in the list of edges
        assert abs(correlation(base[:-lag], base[lag:])) < 4.5 / np.sqrt(len(HALF) - lag)
    for step in (1, 2, 3, 7, 100, 2**20):
        assert abs(correlation(base, sample_edges(HALF, 0, step))) < limit
        assert abs(correlation(base, sample_edges(HALF, step, 0))) < limit
    assert abs(correlation(sample_edges(HALF, 1, 2), sample_edges(HALF, 2, 1))) < limit


def test_no_pair_of_epochs_or_edges_is_correlated():
    """All pairs of 200 epochs over 4,000 edges, and all pairs of 200 edges over 4,000 epochs."""
    size, draws = 200, 4000
    coins = torch.stack([sample_edges(HALF[:draws], 9, epoch) for epoch in range(size)]).double() * 2 - 1
    over_time = torch.stack([sample_edges(HALF[:size], 9, epoch) for epoch in range(draws)]).double().T * 2 - 1
    for table in (coins, over_time):
        products = (table @ table.T / np.sqrt(draws))[tuple(torch.triu_indices(size, size, 1))]
        assert float(products.abs().max()) < 6
        assert float(products.var()) == pytest.approx(1, abs=0.05)


def test_triples_are_independent_too():
    table = torch.stack([sample_edges(HALF[:60], 1, epoch) for epoch in range(8000)]).double() * 2 - 1
    triples = torch.combinations(torch.arange(60), 3)[::7]
    products = (table[:, triples[:, 0]] * table[:, triples[:, 1]] * table[:, triples[:, 2]]).sum(0) / np.sqrt(8000)
    assert float(products.abs().max()) < 6
    assert float(products.var()) == pytest.approx(1, abs=0.1)


def test_pairs_by_node_ids_do_not_depend_on_direction_order_or_batch():
    generator = torch.Generator().manual_seed(3)
    pairs = torch.randint(0, 1000, (2, 400), generator=generator)
    prob = torch.rand(400, generator=generator, dtype=torch.float64)
    mask = sample_edges(prob, 8, 2, pairs=pairs)
    assert torch.equal(sample_edges(prob, 8, 2, pairs=pairs.flip(0)), mask)
    some = torch.randperm(400, generator=generator)[:150]
    assert torch.equal(sample_edges(prob[some], 8, 2, pairs=pairs[:, some]), mask[some])
    wide = torch.stack((torch.arange(20_000), torch.arange(20_000) + 1))
    assert float(sample_edges(HALF, 0, 0, pairs=wide).double().mean()) == pytest.approx(0.5, abs=0.016)


def test_seeds_and_ids_of_any_integer_type():
    ours = sample_edges(HALF, [3, 4], 1)
    for seeds in (np.array([3, 4]), torch.tensor([3, 4], dtype=torch.int32), range(3, 5), (3, 4)):
        assert torch.equal(sample_edges(HALF, seeds, np.int64(1)), ours)
    pairs = torch.arange(40_000).view(2, -1)
    assert torch.equal(sample_edges(HALF, pairs=pairs.int()), sample_edges(HALF, pairs=pairs))


@given(st.integers(1, 60), st.floats(0, 1), st.integers(0, 99))
def test_directed_rule_keeps_exactly_the_floor(pairs, p, seed):
    mask = sample_directed(pairs, p, seed=seed, epoch=1)
    assert mask.shape == (2 * pairs,)
    assert int(mask.sum()) == int(p * 2 * pairs)


def test_directed_rule_is_fair_and_breaks_symmetry(device):
    masks = sample_directed(50, 0.7, seed=list(range(3000)), device=device)
    assert masks.device.type == device.type
    assert masks.sum(dim=1).unique().tolist() == [70]
    assert masks.double().mean(dim=0).cpu().numpy() == pytest.approx(0.7, abs=0.04)
    assert bool((masks[:, :50] != masks[:, 50:]).any())
    assert torch.equal(masks[17].cpu(), sample_directed(50, 0.7, seed=17))


BAD = {
    "list": (lambda: sample_edges([0.5]), "prob must be a tensor, got list"),
    "high": (lambda: sample_edges(torch.tensor([0.5, 1.5])), r"prob must lie in \[0, 1\], got 1.5"),
    "low": (lambda: sample_edges(torch.tensor([-1.0])), "got -1"),
    "nan": (lambda: sample_edges(torch.tensor([float("nan")])), "got nan"),
    "bool": (lambda: sample_edges(torch.tensor([True])), "got dtype torch.bool"),
    "shape": (lambda: sample_edges(torch.ones(1, 1, 1)), r"shape \[M\] or \[T, M\], got \[1, 1, 1\]"),
    "rows": (lambda: sample_edges(torch.ones(2, 4), seed=[1, 2, 3]), "prob has 2 rows, but there are 3 seeds"),
    "seed": (lambda: sample_edges(HALF, seed=[0.5]), r"seed must be a whole number or a list of them, got \[0.5\]"),
    "seed word": (lambda: sample_edges(HALF, seed="1"), "seed must be a whole number or a list of them, got '1'"),
    "no seeds": (lambda: sample_edges(HALF, seed=[]), "seed must be a whole number"),
    "epoch": (lambda: sample_edges(HALF, epoch=1.5), "epoch must be a whole number, got 1.5"),
    "pairs": (
        lambda: sample_edges(HALF, pairs=torch.zeros(2, 3).long()),
        r"pairs must have 20000 entries .* got shape \[2, 3\]",
    ),
    "device": (
        lambda: sample_edges(HALF[:1], pairs=torch.zeros(2, 1, device="meta")),
        "pairs must be a dense tensor .* on meta",
    ),
    "pairs of floats": (
        lambda: sample_edges(HALF, pairs=torch.zeros(2, 20_000)),
        r"pairs must hold whole numbers, got torch.fl",
    ),
    "three ends": (lambda: sample_edges(HALF, pairs=torch.zeros(3, 20_000).int()), r"whole numbers \[2, M\], got"),
    "no seed": (lambda: sample_edges(HALF, seed=None), "seed must be a whole number or a list of them, got None"),
    "epochs": (lambda: sample_edges(HALF, epoch=np.array([1, 2])), "epoch must be a whole number, got array"),
    "directed pairs": (lambda: sample_directed(-1, 0.5), "num_pairs must be a whole number of at least 0, got -1"),
    "directed list": (lambda: sample_directed(3, [0.5]), r"keep_prob must lie in \[0, 1\], got \[0.5\]"),
    "directed": (lambda: sample_directed(4, 1.1), r"keep_prob must lie in \[0, 1\], got 1.1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, message = BAD[name]
    with pytest.raises(TadropedgeError, match=message):
        call()
