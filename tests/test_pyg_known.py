"""What a module remembers of tensors that it has seen: never more than is still true."""

import copy
import gc
import os
import pickle
import threading
import weakref

import pytest
import torch
from test_pyg import make_data
from torch_geometric.data import Data

from tadropedge import SCORES, Graph, edge_scores, keep_probabilities, sample_edges
from tadropedge.pyg import TADropEdge, ta_dropout_edge
from tadropedge.pyg.coins import ArcCoins
from tadropedge.pyg.drop_edge import TAKING
from tadropedge.pyg.known import KEEPING, Known
from tadropedge.pyg.taking import places, take_arcs
from tadropedge.pyg.transforms import NUMBERS
from tadropedge.sampling import BLOCK, CACHED, key, node_pair_words, thresholds, toss_below


def random_arcs(seed, arcs=200, nodes=30):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(nodes, (2, arcs), generator=generator), torch.rand(arcs, generator=generator)


# -- coins --------------------------------------------------------------------------------------------------


def test_thresholds_keep_what_probabilities_keep():
    """Against exact integers of Python, at probabilities where rounding could matter."""
    edge = [0.0, 5e-324, 2.0**-54, 2.0**-53, 0.5 - 2.0**-54, 0.5, 0.5 + 2.0**-53, 1 - 2.0**-53, 1.0, 0.1, 1 / 3]
    for prob in edge:
        threshold = int(thresholds(torch.tensor([prob], dtype=torch.float64))[0])
        limit = (prob - 0.5) * 2.0**53
        for coin in (-(2**52), -(2**52) + 1, threshold - 1, threshold, threshold + 1, -1, 0, 1, 2**52 - 1):
            if -(2**52) <= coin < 2**52:
                assert (coin < threshold) == (coin < limit)


@pytest.mark.parametrize("arcs", [0, 1, 1000, BLOCK + 1, CACHED + BLOCK + 5])
def test_coins_in_one_pass_or_in_parts_are_those_of_the_definition(arcs):
    words = node_pair_words(torch.stack((torch.arange(arcs), 7 * torch.arange(arcs) + 3)))
    prob = torch.linspace(0, 1, arcs, dtype=torch.float64)
    mask = toss_below(words, thresholds(prob), seed=-4, epoch=2**63 + 5)
    multiplier, offset = key(-4, 2**63 + 5)
    for place in range(0, arcs, max(1, arcs // 50)):
        coin = (int(words[place]) * multiplier + offset) % 2**64
        signed = (coin - 2**64 if coin >= 2**63 else coin) >> 11
        assert bool(mask[place]) == (signed < (float(prob[place]) - 0.5) * 2.0**53)


def test_numbers_and_tensors_name_the_same_coins():
    arcs, prob = random_arcs(0)
    coins = ArcCoins.of(node_pair_words(arcs), prob)
    wanted = sample_edges(prob, seed=-9, epoch=4, pairs=arcs)
    assert torch.equal(coins.mask(-9, 4), wanted)
    assert torch.equal(coins.mask(torch.tensor(-9), torch.tensor(4)), wanted)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.int16])
def test_arcs_are_taken_as_by_indexing(dtype, device):
    arcs, prob = random_arcs(1)
    mask = (prob < 0.5).to(device)
    whole = arcs.to(dtype).to(device)
    for given in (whole, whole.T.contiguous().T, whole.flip(0)[:, ::1]):
        kept = take_arcs(given, places(mask))
        assert kept.dtype == dtype
        assert torch.equal(kept, given[:, mask])
    assert take_arcs(whole[:, :0], places(mask[:0])).shape == (2, 0)


# -- what is known ------------------------------------------------------------------------------------------


def test_writes_are_noticed(device):
    arcs, prob = (one.to(device) for one in random_arcs(2))
    node_id = torch.arange(30, device=device)
    drop = TADropEdge(seed=3, advance="manual").to(device)

    def right():
        masks = [drop(arcs, prob, node_id=node_id)[1], ta_dropout_edge(arcs, prob, node_id=node_id, seed=3)[1]]
        return all(torch.equal(mask, sample_edges(prob, seed=3, pairs=node_id[arcs])) for mask in masks)

    assert right()
    prob[:50] = 1.0
    assert right()
    arcs[0, 3:90] = 4
    assert right()
    node_id += 1000
    assert right()
    prob.view(2, -1)[1].zero_()  # through a view
    assert right()
    arcs.set_(torch.flip(arcs, (1,)).contiguous())  # other memory
    assert right()


def test_a_rule_notices_writes():
    data = make_data()
    drop = TADropEdge(score="degree", strategy="proportional", keep_ratio=0.5, advance="manual")
    for _ in range(2):
        graph = Graph.from_edge_index(data.edge_index, 34)
        scores = edge_scores(graph, "degree")
        prob = graph.to_arcs(keep_probabilities(scores, strategy="proportional", keep_ratio=0.5), loops=1.0)
        wanted = sample_edges(prob, pairs=data.edge_index)
        assert torch.equal(drop(data.edge_index, num_nodes=34)[1], wanted)
        rule = {"score": "degree", "strategy": "proportional", "keep_ratio": 0.5}
        assert torch.equal(ta_dropout_edge(data.edge_index, num_nodes=34, **rule)[1], wanted)
        data.edge_index[:, :20] = data.edge_index[:, 20:40].clone()


def test_bad_values_that_are_written_later_are_refused():
    arcs, prob = random_arcs(3)
    drop = TADropEdge()
    drop(arcs, prob)
    prob[0] = 1.5
    for call in (lambda: drop(arcs, prob), lambda: ta_dropout_edge(arcs, prob)):
        with pytest.raises(ValueError, match=r"edge_keep_prob must lie in \[0, 1\], got 1.5"):
            call()
    assert int(drop.epoch) == 1


def test_learned_probabilities_are_read_in_every_call():
    """A fused optimiser does not count what it writes."""
    arcs, prob = random_arcs(4)
    prob = torch.nn.Parameter(prob)
    optimizer = torch.optim.SGD([prob], lr=0.3, fused=True)
    drop = TADropEdge(advance="manual")
    for _ in range(3):
        mask = drop(arcs, prob)[1]
        assert torch.equal(mask, sample_edges(prob.detach(), pairs=arcs))
        prob.grad = torch.where(prob.detach() > 0.5, 1.0, -1.0)
        optimizer.step()


def test_short_lived_tensors_are_never_mistaken():
    """Python soon gives the identity of a dead tensor, and torch its memory, to another one."""
    drop = TADropEdge(seed=1, advance="manual")
    for seed in range(60):
        arcs, prob = random_arcs(seed, arcs=20)
        wanted = sample_edges(prob, seed=1, pairs=arcs)
        assert torch.equal(drop(arcs, prob)[1], wanted)
        assert torch.equal(ta_dropout_edge(arcs, prob, seed=1)[1], wanted)
        del arcs, prob


def test_nothing_of_the_users_is_kept_alive():
    arcs, prob = random_arcs(5)
    drop = TADropEdge()
    drop(arcs, prob)
    ta_dropout_edge(arcs, prob)
    refs = [weakref.ref(arcs), weakref.ref(prob)]
    del arcs, prob
    gc.collect()
    assert [ref() for ref in refs] == [None, None]
    drop(*random_arcs(6))
    assert len(drop.plans.coins) == len(drop.plans.words) == 1  # what belonged to the dead is gone


def test_few_are_kept_and_the_last_used_stay():
    known, tensors = Known(most=2), [torch.zeros(1) for _ in range(3)]
    known.keep((tensors[0],), "a")
    known.keep((tensors[1],), "b")
    assert known.find((tensors[0],)) == "a"
    known.keep((tensors[2],), "c")
    assert [known.find((one,)) for one in tensors] == ["a", None, "c"]
    known.keep((tensors[0], [1]), "a list has no hash")
    assert known.find((tensors[0], [1])) is None
    assert known.find((tensors[0], 1)) is None
    known.keep((tensors[0], 1), "one")
    assert (known.find((tensors[0], True)), known.find((tensors[0], 1.0))) == (None, None)
    with torch.inference_mode():
        new = torch.zeros(1)
    known.keep((new,), "counts no writes")
    assert known.find((new,)) is None


def test_copies_draw_the_same(tmp_path):
    arcs, prob = random_arcs(7)
    drop = TADropEdge(seed=2)
    drop(arcs, prob)
    for twin in (copy.deepcopy(drop), pickle.loads(pickle.dumps(drop))):
        assert len(twin.plans.coins) == 0
        assert torch.equal(twin(arcs, prob)[1], sample_edges(prob, seed=2, epoch=1, pairs=arcs))


@pytest.mark.parametrize("rule", [{}, {"keep_prob": 0.5}])
def test_what_inference_mode_made_serves_training(rule):
    data = make_data()
    prob = torch.full((data.num_edges,), 0.5)
    prob[data.edge_index[0] == data.edge_index[1]] = 1.0  # self-loops, which a rule always keeps
    given = () if rule else (prob,)
    drop = TADropEdge(advance="manual", **rule)
    with torch.inference_mode():
        first = drop(data.edge_index, *given)[1].clone()
    attr = data.edge_attr.requires_grad_()
    _, mask, kept = drop(data.edge_index, *given, attr)
    kept.sum().backward()
    assert torch.equal(first, sample_edges(prob, pairs=data.edge_index))
    assert torch.equal(mask, first)
    assert torch.equal(attr.grad, mask[:, None].expand(-1, 3).float())


def test_gradients_by_torch_func():
    arcs, prob = random_arcs(8)
    drop = TADropEdge(advance="manual")
    weight = torch.ones(200)

    def total(weight):
        return drop(arcs, prob, weight)[2].sum()

    wanted = sample_edges(prob, pairs=arcs)
    for _ in range(2):
        assert torch.equal(torch.func.grad(total)(weight), wanted.float())
        assert torch.equal(drop(arcs, prob)[1], wanted)


def test_threads_with_graphs_of_their_own():
    drop = TADropEdge(seed=6, advance="manual")
    failed = []

    def draw(seed):
        arcs, prob = random_arcs(seed)
        wanted = sample_edges(prob, seed=6, pairs=arcs)
        for _ in range(20):
            masks = (drop(arcs, prob)[1], ta_dropout_edge(arcs, prob, seed=6)[1])
            failed.extend(seed for mask in masks if not torch.equal(mask, wanted))

    threads = [threading.Thread(target=draw, args=(seed,)) for seed in range(12)]  # more than are kept
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("lock", [KEEPING, TAKING, NUMBERS], ids=["keeping", "taking", "numbers"])
def test_no_process_is_forked_while_another_thread_holds_a_lock(lock):
    held, forking, free = threading.Event(), threading.Event(), []

    def hold():
        with lock:
            held.set()
            forking.wait(0.2)  # a fork that does not wait comes in this time
            free.append(True)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if lock.acquire(timeout=1) and free else 1)
    forking.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    assert lock.acquire(timeout=1)
    lock.release()


def test_probabilities_that_become_learned_are_read_in_every_call():
    """Fused optimisers write without a count."""
    arcs, prob = random_arcs(10)
    drop = TADropEdge(advance="manual")
    drop(arcs, prob)
    optimiser = torch.optim.Adam([prob.requires_grad_()], lr=0.2, fused=True)
    (prob * (prob.detach() - 0.5)).sum().backward()  # towards 0.5, so that all stay in [0, 1]
    optimiser.step()
    assert torch.equal(drop(arcs, prob)[1], sample_edges(prob.detach(), pairs=arcs))


def test_one_module_on_graphs_with_common_tensors():
    """The same arcs with other probabilities or ids are other coins."""
    arcs, prob = random_arcs(9)
    others = [None, torch.arange(30) + 7, torch.arange(30).flip(0)]
    drop = TADropEdge(advance="manual")
    for _ in range(2):
        for ids in others:
            for given in (prob, 1 - prob):
                pairs = arcs if ids is None else ids[arcs]
                assert torch.equal(drop(arcs, given, node_id=ids)[1], sample_edges(given, pairs=pairs))


def test_a_data_is_thinned_as_by_its_own_method():
    data = make_data()
    data.edge_names = [f"{i}-{j}" for i, j in data.edge_index.T.tolist()]
    data.edge_keep_prob = torch.linspace(0, 1, data.num_edges)
    data.graph_label = torch.tensor([3])
    wanted = data.edge_subgraph(sample_edges(data.edge_keep_prob, pairs=data.edge_index))
    thin = TADropEdge()(data)
    assert type(thin) is Data
    assert list(thin.keys()) == list(wanted.keys())
    for name in ("x", "edge_index", "edge_attr", "edge_keep_prob", "graph_label"):
        assert torch.equal(thin[name], wanted[name])
    assert thin.edge_names == wanted.edge_names


def test_a_name_that_stands_for_another_score_is_noticed(monkeypatch):
    arcs = make_data().edge_index
    asked = []

    def last(graph):
        asked.append("last")
        return graph.pairs[1].double() + 1

    def first(graph):
        asked.append("first")
        return graph.pairs[0].double() + 1

    rule = {"strategy": "proportional", "keep_ratio": 0.5}
    for function in (last, first):
        monkeypatch.setitem(SCORES, "mine", function)
        graph = Graph.from_edge_index(arcs)
        prob = graph.to_arcs(keep_probabilities(function(graph), **rule), loops=1.0)
        asked.clear()
        for _ in range(3):
            assert torch.equal(ta_dropout_edge(arcs, score="mine", **rule)[1], sample_edges(prob, pairs=arcs))
        assert asked == [function.__name__]
    for _ in range(2):
        ta_dropout_edge(arcs, score=last, **rule)
    assert asked[1:] == ["last", "last"]  # own functions are called each time
