"""Mistakes that nobody notices in training are said: the order of transforms, cached layers, old checkpoints."""

import copy
import warnings

import pytest
import torch
from test_pyg import make_data
from torch import nn
from torch_geometric import EdgeIndex
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import DataLoader
from torch_geometric.nn import APPNP, GCNConv, SGConv
from torch_geometric.transforms import AddSelfLoops, Compose, GCNNorm, ToSparseTensor, ToUndirected

from tadropedge import TadropedgeError
from tadropedge.pyg import AddKeepProbability, AddScore, AddShift, TADropEdge, check_model, ta_dropout_edge
from tadropedge.pyg.traps import is_normalised

LOOK = "data.edge_weight looks like that of GCNNorm"


def plain():
    """Karate with both directions, each once."""
    data = make_data()
    arcs = data.edge_index[:, data.edge_index[0] != data.edge_index[1]].unique(dim=1)
    return Data(x=data.x, edge_index=arcs, num_nodes=34)


# -- the order of transforms --------------------------------------------------------------------------------


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_weights_of_gcn_norm_are_recognised(loops, weighted):
    data = plain()
    if weighted:
        data.edge_weight = 1 + data.edge_index.sum(0).float()  # the same in both directions
    normal = GCNNorm(add_self_loops=loops)(data)
    seen = is_normalised(normal.edge_index, normal.edge_weight, 34)
    assert seen == (loops or not weighted)  # without loops the degrees of a weighted graph cannot be known
    if weighted:
        assert not is_normalised(data.edge_index, data.edge_weight, 34)


def test_other_weights_are_not():
    data = plain()
    generator = torch.Generator().manual_seed(0)
    weights = [torch.ones(156), torch.full((156,), 0.1), torch.rand(156, generator=generator), -torch.ones(156)]
    for weight in (*weights, torch.zeros(156), torch.ones(3)):
        assert not is_normalised(data.edge_index, weight, 34)
    whole = AddSelfLoops()(data).edge_index
    assert not is_normalised(whole, torch.rand(190, generator=generator), 34)
    assert not is_normalised(torch.empty(2, 0, dtype=torch.long), torch.empty(0), 3)


def test_scores_after_gcn_norm_are_warned_of_once():
    data = GCNNorm()(plain())
    score = AddScore("degree")
    with pytest.warns(UserWarning, match=f"{LOOK}.*apply GCNNorm to what TADropEdge returns"):
        score(data)
    score(data)
    drop = TADropEdge(score="degree", keep_prob=0.5)
    with pytest.warns(UserWarning, match=LOOK):
        drop(data)
    drop(data)


def test_dropping_after_gcn_norm_is_warned_of_once():
    data = AddKeepProbability(keep_prob=0.5)(AddScore("degree")(plain()))
    data = GCNNorm(add_self_loops=False)(data)
    drop = TADropEdge()
    with pytest.warns(UserWarning, match=f"{LOOK}.*the kept ones still belong to the degrees of the whole graph"):
        drop(data)
    drop(data)
    TADropEdge(unbiased=True)(data)  # is what whole-graph degrees are for
    TADropEdge()(AddShift()(plain().update({"edge_keep_prob": torch.full((156,), 0.5)})))


@pytest.mark.filterwarnings("ignore:Sparse")
def test_weights_of_gcn_norm_are_seen_in_every_shape():
    data = GCNNorm()(plain())
    sparse = ToSparseTensor(layout=torch.sparse_csr)(data.clone())
    listed = Data(edge_index=EdgeIndex(data.edge_index, sparse_size=(34, 34)), edge_weight=data.edge_weight)
    for given, name in ((sparse, "data.adj_t"), (sparse.adj_t, "adj_t"), (listed, "data.edge_weight")):
        drop = TADropEdge(score="degree", keep_prob=0.5)
        with pytest.warns(UserWarning, match=f"^{name} looks like that of GCNNorm.*GCNNorm to what TADropEdge returns"):
            drop(given)
        drop(given)
    bare = ToSparseTensor(layout=torch.sparse_csr)(plain())
    TADropEdge(score="degree", keep_prob=0.5)(bare)
    TADropEdge(score="degree", keep_prob=0.5)(bare.adj_t)


def test_the_probability_of_dropping_is_told_from_that_of_keeping():
    with pytest.raises(TadropedgeError, match=r"p=0.3: PyG's p is the probability of dropping .* keep_prob=1 - p"):
        TADropEdge(p=0.3)
    with pytest.raises(TadropedgeError, match=r"seed must be .*, got 0.3; a probability is given as keep_prob="):
        TADropEdge(0.3)
    with pytest.raises(TadropedgeError, match=r"edge_keep_prob must be a tensor, .* keep_prob, from 0 to 1"):
        ta_dropout_edge(plain().edge_index, 30.0)
    with pytest.raises(TadropedgeError, match=r"edge_keep_prob=0.3 and keep_prob=0.5: give one of them"):
        ta_dropout_edge(plain().edge_index, 0.3, keep_prob=0.5)
    one, all_of_them = ta_dropout_edge(plain().edge_index, 0.3), ta_dropout_edge(plain().edge_index, keep_prob=0.3)
    assert torch.equal(one[1], all_of_them[1])


def test_self_loops_before_change_no_score():
    data = plain()
    looped = AddSelfLoops()(data)
    proper = looped.edge_index[0] != looped.edge_index[1]
    for score in (AddScore("aggregate", q=3), AddScore("degree")):
        assert torch.equal(score(looped).edge_score[proper], score(data).edge_score)
    thin = TADropEdge(keep_prob=0.0)(looped)
    assert torch.equal(thin.edge_index[0], thin.edge_index[1])
    assert thin.num_edges == 34


@pytest.mark.parametrize("late", [AddSelfLoops(), GCNNorm()])
def test_arcs_that_come_later_have_no_probability(late):
    words = "AddSelfLoops, ToUndirected and GCNNorm add arcs that have no"
    scored = AddScore("degree")(plain())
    with pytest.raises(TadropedgeError, match=f"{words} edge_score: apply the first two before scoring"):
        AddKeepProbability(keep_prob=0.5)(late(scored))
    data = late(AddKeepProbability(keep_prob=0.5)(scored))
    data.edge_weight = None
    with pytest.raises(TadropedgeError, match=f"edge_keep_prob has shape .*156.*190 arcs; {words} edge_keep_prob"):
        TADropEdge()(data)
    with pytest.raises(TadropedgeError, match=words):
        ta_dropout_edge(data.edge_index, data.edge_keep_prob)


def test_summed_probabilities_are_refused_above_one_and_warned_of_below():
    high = Compose([AddScore("degree"), AddKeepProbability(keep_prob=0.5), ToUndirected()])(plain())
    words = r"ToUndirected\(reduce='add'\) sums .*: apply ToUndirected before AddScore and AddKeepProbability"
    for call in (lambda: TADropEdge()(high), lambda: TADropEdge(exact=True)(high)):
        with pytest.raises(TadropedgeError, match=words):
            call()
    low = Compose([AddKeepProbability("uniform", keep_prob=0.25), ToUndirected()])(plain())
    assert low.edge_keep_prob.tolist() == [0.5] * 156
    drop = TADropEdge()
    with pytest.warns(UserWarning, match=f"goes up to 0.5, but AddKeepProbability wrote nothing above 0.25. {words}"):
        drop(low)
    drop(low)
    (batch,) = DataLoader([low, low], batch_size=2)
    with pytest.warns(UserWarning, match="goes up to 0.5"):
        TADropEdge()(batch)


def test_summed_probabilities_of_a_relation_are_warned_of():
    data = HeteroData()
    data["a"].num_nodes, data["a", "to", "a"].edge_index = 34, plain().edge_index
    low = Compose([AddKeepProbability("uniform", keep_prob=0.25), ToUndirected()])(data)
    drop = TADropEdge()
    with pytest.warns(UserWarning, match="goes up to 0.5, but AddKeepProbability wrote nothing above 0.25"):
        drop(low)
    drop(low)


def test_what_is_not_summed_is_not_warned_of():
    directed = Data(edge_index=plain().edge_index[:, plain().edge_index[0] < plain().edge_index[1]], num_nodes=34)
    rule = AddKeepProbability("proportional", keep_ratio=0.3)
    for transform in (
        Compose([AddScore("degree"), rule, ToUndirected(reduce="mean")]),
        Compose([AddScore("degree"), rule, ToUndirected()]),  # each direction is there once
        Compose([ToUndirected(), AddScore("degree"), rule]),
    ):
        data = transform(directed)
        TADropEdge()(data)
        TADropEdge()(data.subgraph(torch.arange(20)))
        data.edge_keep_prob = data.edge_keep_prob.float()
        TADropEdge()(data)
        (batch,) = DataLoader([data, data], batch_size=2)
        TADropEdge()(batch)


# -- cached layers ------------------------------------------------------------------------------------------


class Net(nn.Module):
    """The model of PyG's own example, with one line more."""

    def __init__(self, layer, nested=False, **settings):
        super().__init__()
        self.drop = TADropEdge(keep_prob=0.5)
        parts = (GCNConv(4, 8), layer)
        if nested:
            self.parts = nn.ModuleList(parts)
        else:
            self.conv1, self.conv2 = parts

    def forward(self, x, edge_index):
        edge_index, _ = self.drop(edge_index)
        for layer in self.children():
            if not isinstance(layer, TADropEdge):
                x = layer[0](x, edge_index) if isinstance(layer, nn.ModuleList) else layer(x, edge_index)
        return x


class Outer(nn.Module):
    """A model that holds the one that drops beside a layer that remembers."""

    def __init__(self):
        super().__init__()
        self.inner, self.head = Net(GCNConv(8, 8)), GCNConv(8, 2, cached=True)

    def forward(this, x, edge_index):  # noqa: N805 -- whatever it is called
        return this.head(this.inner(x, edge_index), edge_index)


@pytest.mark.parametrize(
    ("model", "called"),
    [
        (Net(GCNConv(8, 2, cached=True)), r"the layer 'conv2' \(GCNConv\) beside TADropEdge in Net"),
        (Net(SGConv(8, 2, cached=True), nested=True), r"the layer 'parts.1' \(SGConv\) beside"),
        (Outer(), r"the layer 'head' \(GCNConv\) beside TADropEdge in Outer"),
    ],
)
def test_a_cached_layer_beside_the_module_is_found(model, called):
    data = plain()
    with warnings.catch_warnings(action="error"):
        copy.deepcopy(model).eval()(data.x, data.edge_index)  # nothing is dropped there
    with pytest.warns(UserWarning, match=f"{called}.* has cached=True: it would remember the first subgraph"):
        model(data.x, data.edge_index)
    model(data.x, data.edge_index)
    with pytest.raises(TadropedgeError, match="has cached=True"):
        check_model(model)


def test_models_without_cached_layers_pass():
    model, data = Net(GCNConv(8, 2)), plain()
    model(data.x, data.edge_index)
    check_model(model)
    with pytest.raises(TadropedgeError, match="the layer 'prop'"):
        check_model(nn.ModuleDict({"prop": APPNP(2, 0.1, cached=True)}))
    with pytest.raises(TadropedgeError, match="model must be a Module, got"):
        check_model("GCN")


# -- old checkpoints ----------------------------------------------------------------------------------------


def test_an_old_checkpoint_is_loaded_with_a_warning():
    new = Net(GCNConv(8, 2))
    new.drop = TADropEdge(seed=7, keep_prob=0.5)
    old = {name: torch.full_like(value, 0.5) for name, value in new.state_dict().items() if "drop" not in name}
    with pytest.warns(UserWarning, match="the checkpoint has no drop.seed and no drop.epoch: .* seed 7 and epoch 0"):
        new.load_state_dict(old)
    assert bool((new.conv1.lin.weight == 0.5).all())
    assert (int(new.drop.seed), int(new.drop.epoch)) == (7, 0)


def test_a_damaged_checkpoint_is_refused_as_ever():
    model = Net(GCNConv(8, 2))
    state = model.state_dict()
    half = {name: value for name, value in state.items() if name != "drop.epoch"}
    with pytest.raises(RuntimeError, match=r"Missing key\(s\) in state_dict: \"drop.epoch\""):
        model.load_state_dict(half)
    lost = {name: value for name, value in state.items() if name != "conv1.bias"}
    with pytest.raises(RuntimeError, match=r"Missing key\(s\) in state_dict: \"conv1.bias\""):
        model.load_state_dict(lost)
    model.load_state_dict(state)
