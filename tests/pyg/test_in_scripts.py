"""In what PyG scripts are made of: models, views, copies, checkpoints, compilers, Lightning, workers; the examples."""

import copy
import io
import pickle
import re
import runpy
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader, NeighborLoader
from torch_geometric.nn import APPNP, GAT, GCN, MLP, GCNConv, Sequential, SGConv
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE

from tadropedge import Dropping, TadropedgeError, consistency_loss
from tadropedge.pyg import AddKeepProbability, DropEdge, check_model
from tadropedge.testing.graphs import ZOO

ARCS = torch.cat((ZOO["karate"].pairs, ZOO["karate"].pairs.flip(0)), dim=1)
X = torch.randn(34, 4, generator=torch.Generator().manual_seed(0))
EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("pyg_*.py"))


class Net(nn.Module):
    """A model with the line that drops."""

    def __init__(self, **settings):
        super().__init__()
        self.drop = DropEdge("degree-proportional", keep_ratio=0.6, **settings)
        self.conv = GCNConv(4, 3)

    def forward(self, x, edge_index):
        edge_index, _ = self.drop(edge_index)
        return self.conv(x, edge_index)


def net():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Net(seed=3)


# -- several views of one step --------------------------------------------------------------------------------

MODELS = {
    "gcn": lambda: GCN(4, 8, num_layers=2, out_channels=3, dropout=0.5),
    "gat": lambda: GAT(4, 8, num_layers=2, out_channels=3, dropout=0.5, heads=2),
    "appnp": lambda: Sequential("x, e", [(MLP([4, 8, 3], norm=None), "x -> x"), (APPNP(K=5, alpha=0.1), "x, e -> x")]),
}


@pytest.mark.parametrize("name", MODELS)
def test_consistency_over_views_of_one_step(name):
    data, known, y = Data(x=X, edge_index=ARCS), torch.arange(6), torch.arange(34) % 3
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model, drop = MODELS[name](), DropEdge("degree-proportional", keep_ratio=0.6, seed=2)
        optimizer, found = torch.optim.Adam(model.parameters(), lr=0.05), []
        for _ in range(40):
            optimizer.zero_grad()
            logits = torch.stack([model(view.x, view.edge_index) for view in drop.views(data, 3)])
            loss = nn.functional.cross_entropy(logits[:, known].flatten(0, 1), y[known].repeat(3))
            total = loss + consistency_loss(logits, balance=0.1)
            total.backward()
            optimizer.step()
            found.append(float(total.detach()))
    assert drop.epoch == 40  # n subgraphs are one step
    assert sum(found[-5:]) < sum(found[:5])
    assert all(bool(each.grad.isfinite().all()) for each in model.parameters())


def test_views_differ_and_are_the_draws_of_the_plan():
    drop, plan = DropEdge("degree-proportional", keep_ratio=0.6, seed=2), Dropping.parse("degree-proportional@0.6")
    plan = plan.plan(ZOO["karate"])
    for epoch in range(2):
        for stream, (_, mask) in enumerate(drop.views(ARCS, 3)):
            assert torch.equal(mask[:78], plan.sample(2, epoch, stream))
    assert all(bool(mask.all()) for _, mask in drop.eval().views(ARCS, 2))


# -- models that do not go with it ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (nn.ModuleDict({"conv2": GCNConv(4, 2, cached=True)}), r"'conv2' \(GCNConv\)"),
        (nn.Sequential(nn.ModuleList([SGConv(4, 2, cached=True)])), r"'0.0' \(SGConv\)"),
        (APPNP(2, 0.1, cached=True), "APPNP"),
        ("GCN", "torch.nn.Module"),
    ],
)
def test_layers_that_remember_a_graph_are_named(model, name):
    with pytest.raises(TadropedgeError, match=name):
        check_model(model)


def test_layers_that_drop_again_are_named():
    with pytest.warns(UserWarning, match=r"'prop' \(APPNP\) .* its 2 steps"):
        check_model(nn.ModuleDict({"prop": APPNP(2, 0.1, dropout=0.3)}))
    for make in MODELS.values():
        check_model(make())


# -- copies, checkpoints, compilers -----------------------------------------------------------------------------


def saved(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def loaded(model):
    file, other = io.BytesIO(), Net()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    return other


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model)), saved, loaded])
def test_a_copy_of_a_model_goes_on_as_the_model_does(copied):
    model = net()
    for _ in range(3):
        model(X, ARCS)
    other = copied(model)
    for _ in range(2):
        assert torch.equal(model(X, ARCS), other(X, ARCS))
    other = copied(model)
    model(X, ARCS)
    assert other.drop.epoch == 5
    with torch.no_grad():
        assert torch.equal(model.eval()(X, ARCS), model.conv(X, ARCS))


@pytest.mark.filterwarnings("ignore::UserWarning:torch", "ignore::DeprecationWarning:torch")
def test_a_compiled_model_draws_the_same():
    model, compiled = net(), torch.compile(net(), backend="eager")
    for _ in range(3):
        assert torch.allclose(model(X, ARCS), compiled(X, ARCS))
    assert compiled.drop.epoch == 3


def test_gradient_checkpointing_with_an_epoch_of_ones_own():
    model, other = net(), net()
    for each in (model, other):
        each.drop.set_epoch(4)
    model(X, ARCS).square().sum().backward()
    checkpoint(other, X, ARCS, use_reentrant=False).square().sum().backward()
    assert torch.equal(model.conv.lin.weight.grad, other.conv.lin.weight.grad)


@pytest.mark.filterwarnings("ignore")  # of Lightning's own
def test_lightning_counts_epochs_and_goes_on_after_a_resume(tmp_path, monkeypatch):
    lightning = pytest.importorskip("pytorch_lightning")
    from tadropedge.pyg.lightning import SetEpoch

    seen = []

    class Lit(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = net()

        def training_step(self, batch, _):
            seen.append(self.net.drop.epoch)
            return self.net(batch.x, batch.edge_index).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    monkeypatch.chdir(tmp_path)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    loader = DataLoader([Data(x=X, edge_index=ARCS)] * 2, batch_size=1)
    for epochs, file in ((2, None), (3, "last.ckpt")):
        trainer = lightning.Trainer(max_epochs=epochs, callbacks=[SetEpoch()], **quiet, enable_checkpointing=False)
        trainer.fit(Lit(), loader, ckpt_path=file)
        trainer.save_checkpoint("last.ckpt")
    assert seen == [0, 0, 1, 1, 2, 2]


# -- workers --------------------------------------------------------------------------------------------------


class Thinned(torch.utils.data.Dataset):
    """Eight times the same graph, thinned where it is loaded."""

    def __init__(self, drop):
        self.drop = drop

    def __len__(self):
        return 8

    def __getitem__(self, place):
        return self.drop(ARCS)[1]


def passes(drop, workers, count=2, persistent=False):
    """What a loader finds in each of several passes."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        loader = torch.utils.data.DataLoader(
            Thinned(drop), batch_size=None, num_workers=workers, persistent_workers=persistent
        )
        return [[tuple(mask.tolist()) for mask in loader] for _ in range(count)]


@pytest.mark.parametrize("persistent", [False, True], ids=["fresh", "persistent"])
@pytest.mark.parametrize("seed", [None, 3])
def test_copies_in_workers_and_passes_differ(seed, persistent):
    """Unless the caller counts the epochs of a seed of their own."""
    first, second = passes(DropEdge(p=0.5, seed=seed), 2, persistent=persistent)
    assert len({*first, *second}) == 16


def test_with_a_seed_and_an_epoch_of_ones_own_any_number_of_workers_draws_the_same():
    drop, found = DropEdge(p=0.5, seed=3), []
    for epoch in range(2):
        drop.set_epoch(epoch)
        (alone,), (one,), (two,) = (passes(drop, workers, 1) for workers in (0, 1, 2))
        assert alone == one == two
        assert len(set(alone)) == 1
        found.append(alone[0])
    assert found[0] != found[1]


@pytest.mark.skipif(not (WITH_PYG_LIB or WITH_TORCH_SPARSE), reason="neither pyg-lib nor torch-sparse")
@pytest.mark.filterwarnings("ignore:Using 'NeighborSampler'", "ignore::DeprecationWarning")  # what torch-sparse brings
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_neighbor_loader_keep_what_the_whole_graph_keeps(workers):
    data = AddKeepProbability("degree-proportional", keep_ratio=0.6)(Data(x=X, edge_index=ARCS))
    drop = DropEdge(keep_prob="edge_keep_prob", seed=1)
    drop.set_epoch(2)
    whole = {tuple(arc) for arc in drop(data).edge_index.t().tolist()}
    for transform in (None, drop):  # in the main process, or in the workers
        for batch in NeighborLoader(data, [3, 3], batch_size=6, num_workers=workers, transform=transform):
            thin = drop(batch)
            kept = {tuple(arc) for arc in thin.n_id[thin.edge_index].t().tolist()}
            asked = {tuple(arc) for arc in batch.n_id[batch.edge_index].t().tolist()}
            assert kept == asked & whole


# -- the examples ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(path), "--epochs", "2"])
    with torch.random.fork_rng():
        runpy.run_path(str(path), run_name="__main__")
    assert re.search(r": \d\.\d\d\n", capsys.readouterr().out)
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 60
