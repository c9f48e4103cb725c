"""PyG's GCN in PyTorch Lightning: checkpoints carry the module's epoch. Test accuracy without and with dropping."""

import argparse
import os

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCN
from torch_geometric.utils import to_undirected

from tadropedge.data import load_dataset
from tadropedge.pyg import TADropEdge

try:
    import pytorch_lightning as lightning
except ImportError:
    raise SystemExit("this example needs PyTorch Lightning: pip install pytorch-lightning") from None


class Classifier(lightning.LightningModule):
    def __init__(self, features, classes, drop):
        super().__init__()
        self.drop, self.network = drop, GCN(features, 16, num_layers=2, out_channels=classes, dropout=0.5)

    def training_step(self, data):
        return F.cross_entropy(self.network(data.x, self.drop(data).edge_index)[data.train], data.y[data.train])

    def test_step(self, data):
        right = self.network(data.x, self.drop(data).edge_index).argmax(1) == data.y  # here nothing is dropped
        self.log("accuracy", right[data.test].float().mean(), batch_size=1)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01, weight_decay=5e-4)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="cora" if "TADROPEDGE_DATA" in os.environ else "clusters")
    for name, value in (("--epochs", 100), ("--seed", 0)):
        parser.add_argument(name, type=int, default=value)
    options, result = parser.parse_args(argv), {}
    found = load_dataset(options.data, seed=options.seed)
    data = Data(x=found.features.to_dense(), edge_index=to_undirected(found.graph.pairs), y=found.labels)
    data.train, data.test = found.split.train, found.split.test
    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    drop = TADropEdge(score="degree", keep_prob=0.5, seed=options.seed)
    for name, module in (("all edges", torch.nn.Identity()), ("dropping", drop)):
        lightning.seed_everything(options.seed, verbose=False)
        trainer = lightning.Trainer(max_epochs=options.epochs, accelerator="cpu", **quiet)
        trainer.fit(model := Classifier(data.num_features, found.num_classes, module), DataLoader([data]))
        result[name] = trainer.test(model, DataLoader([data]), verbose=False)[0]["accuracy"]
    print(", ".join(f"{name}: {accuracy:.3f}" for name, accuracy in result.items()))
    return result


if __name__ == "__main__":
    main()
