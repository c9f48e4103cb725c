"""Batches as PyG's ``NeighborLoader`` makes them: directed arcs, ``n_id`` and ``e_id``; its compiled sampler replaced.

``NeighborLoader`` is a ``NodeLoader`` with a sampler that needs pyg-lib or torch-sparse. Here a sampler of ten lines
stands for it: all else, which attributes a batch carries and under which names, is PyG's own.
"""

import pytest
import torch
from torch_geometric.datasets import KarateClub
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import BaseSampler, SamplerOutput

from tadropedge.pyg import AddKeepProbability, AddScore, TADropEdge


class FewNeighbours(BaseSampler):
    """At most ``most`` neighbours of each node, two hops from the seeds, and the arcs towards those that ask."""

    def __init__(self, edge_index, most):
        self.edge_index, self.most = edge_index, most
        self.generator = torch.Generator().manual_seed(0)

    def sample_from_nodes(self, index, **_):
        nodes = index.node.tolist()
        arcs, asking = [], list(nodes)
        for _hop in range(2):
            found = []
            for node in asking:
                into = (self.edge_index[1] == node).nonzero()[:, 0]
                found += into[torch.randperm(len(into), generator=self.generator)[: self.most]].tolist()
            arcs += found
            asking = sorted({*self.edge_index[0, found].tolist()} - {*nodes})
            nodes += asking
        arcs = torch.tensor(list(dict.fromkeys(arcs)))
        place = {node: at for at, node in enumerate(nodes)}
        row, col = (torch.tensor([place[node] for node in side]) for side in self.edge_index[:, arcs].tolist())
        metadata = (index.input_id, index.time)
        return SamplerOutput(node=torch.tensor(nodes), row=row, col=col, edge=arcs, metadata=metadata)

    def sample_from_edges(self, index, **_):
        raise NotImplementedError

    @property
    def edge_permutation(self):
        return None


def scored():
    return AddKeepProbability("proportional", keep_ratio=0.6)(AddScore("degree")(KarateClub()[0]))


@pytest.mark.parametrize("unbiased", [False, True])
def test_batches_of_a_loader_see_the_edges_that_the_whole_graph_keeps(unbiased):
    data = scored()
    drop = TADropEdge(seed=3, advance="manual", unbiased=unbiased)
    loader = NodeLoader(data, FewNeighbours(data.edge_index, 3), input_nodes=torch.arange(34), batch_size=6)
    for epoch in (0, 1, 5):
        drop.set_epoch(epoch)
        whole = drop.mask(data.edge_index, data.edge_keep_prob)
        for batch in loader:
            assert torch.equal(batch.n_id[batch.edge_index], data.edge_index[:, batch.e_id])  # PyG's own promise
            thin = drop(batch)
            expected = data.edge_index[:, batch.e_id[whole[batch.e_id]]]
            assert 0 < expected.shape[1] < batch.edge_index.shape[1]
            assert torch.equal(thin.n_id[thin.edge_index], expected)
            if unbiased:
                prob = data.edge_keep_prob[batch.e_id[whole[batch.e_id]]]
                torch.testing.assert_close(thin.edge_weight.double(), 1 / prob.double(), atol=1e-6, rtol=1e-6)


def test_the_mask_of_the_whole_graph_can_be_read_by_arcs():
    data = scored()
    drop = TADropEdge(seed=3, advance="manual")
    whole = drop.mask(data.edge_index, data.edge_keep_prob)
    loader = NodeLoader(data, FewNeighbours(data.edge_index, 2), input_nodes=torch.arange(34), batch_size=10)
    for batch in loader:
        mine = drop.mask(batch.edge_index, batch.edge_keep_prob, node_id=batch.n_id)
        assert torch.equal(mine, whole[batch.e_id])
