"""TADropEdge where its epoch could be lost: threads, workers, tracers, compilers, copies, recomputation."""

from __future__ import annotations

import copy
import io
import multiprocessing
import pickle
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset
from torch_geometric.data import Data

from tadropedge import Graph, TadropedgeError, sample_edges
from tadropedge.pyg import AddKeepProbability, AddResistance, TADropEdge
from torture import Case
from torture.process import forked

TRIES = "TADropEdge in threads, workers, compilers and copies"

ARCS = torch.stack((torch.arange(96), (torch.arange(96) + 1) % 96))  # a cycle: masks of 96 coins do not meet by chance
PROB = torch.full((96,), 0.5, dtype=torch.float64)
OUTSIDE = {"nan": torch.nan, "inf": torch.inf, "-inf": -torch.inf, "-0.1": -0.1, "1.1": 1.1, "1 + 1e-9": 1 + 1e-9}
WEDGES = torch.stack((torch.arange(96), (torch.arange(96) + 5) % 96))
KNOWN = torch.cat((ARCS, WEDGES), dim=1)  # the cycle with chords: every node has degree 4, so all edges score alike
RULES: dict[str, dict[str, Any]] = {
    "a rule": {"score": "degree", "strategy": "proportional", "keep_ratio": 0.75},
    "a connected rule": {"score": "degree", "strategy": "proportional", "keep_ratio": 0.75, "connected": True},
    "an exact rule": {"score": "degree", "strategy": "proportional", "keep_ratio": 0.75, "exact": True},
}
Check = Callable[[Path], None]


def cases() -> Iterator[Case]:
    """Threads first, then workers, programs that are traced or compiled, passes, copies, and all of it by rule."""
    for listed in (_threads, _workers, _programs, _values, _passes, _copies, _rules):
        for name, check in listed():
            yield Case(name, check)


# --- what must hold -------------------------------------------------------------------------------------------------


def mask_of(epoch: int, seed: int = 0) -> Tensor:
    """The mask by the pure function."""
    return sample_edges(PROB, seed=seed, epoch=epoch, pairs=ARCS)


@contextmanager
def refused(*words: str, kind: type[Exception] = TadropedgeError) -> Iterator[None]:
    """The block raises an error of this kind with these words."""
    told = "nothing was refused"
    try:
        yield
    except kind as error:
        told = str(error)
    assert all(word in told for word in words), f"expected {words}, got {told}"


def same(masks: list[Tensor], expected: list[Tensor]) -> None:
    """Masks in any order are the expected ones, each once."""
    found, wanted = (sorted(tuple(mask.tolist()) for mask in each) for each in (masks, expected))
    assert len(set(found)) == len(set(wanted)), f"{len(set(found))} distinct masks of {len(found)}"
    assert found == wanted


class Net(nn.Module):
    """A model with one TADropEdge inside."""

    def __init__(self, **settings: object) -> None:
        super().__init__()
        self.drop = TADropEdge(**settings)  # type: ignore[arg-type]

    def forward(self, edge_index: Tensor, prob: Tensor) -> Tensor:
        return self.drop.mask(edge_index, prob)


# --- threads --------------------------------------------------------------------------------------------------------


def _threads() -> Iterator[tuple[str, Check]]:
    for count in (2, 3, 4, 8, 16, 32):
        yield f"{count} threads draw with advance='call'", partial(_by_call, count)
    yield "8 threads draw with advance='manual'", _by_hand
    yield "8 threads call next_epoch", _counted
    yield "4 threads resume from a state_dict", _resumed


def in_threads(count: int, work: Callable[[], None]) -> None:
    """Run ``work`` in that many threads which the interpreter switches as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)


def _drawn(drop: TADropEdge, threads: int, calls: int) -> list[Tensor]:
    masks: list[Tensor] = []
    in_threads(threads, lambda: masks.extend(drop.mask(ARCS, PROB) for _ in range(calls)))
    return masks


def _by_call(threads: int, folder: Path) -> None:
    drop, calls = TADropEdge(), 480 // threads
    same(_drawn(drop, threads, calls), [mask_of(epoch) for epoch in range(threads * calls)])
    assert int(drop.epoch) == threads * calls


def _by_hand(folder: Path) -> None:
    drop = TADropEdge(advance="manual")
    drop.set_epoch(7)
    assert all(torch.equal(mask, mask_of(7)) for mask in _drawn(drop, 8, 20))


def _counted(folder: Path) -> None:
    drop = TADropEdge(advance="manual")
    in_threads(8, lambda: [drop.next_epoch() for _ in range(500)] and None)
    assert int(drop.epoch) == 4000


def _resumed(folder: Path) -> None:
    first, second = TADropEdge(seed=3), TADropEdge()
    masks = _drawn(first, 4, 25)
    second.load_state_dict(first.state_dict())
    same(masks + _drawn(second, 4, 25), [mask_of(epoch, seed=3) for epoch in range(200)])


# --- DataLoader workers ---------------------------------------------------------------------------------------------


class Drawing(Dataset[Tensor]):
    """Six items, each a mask drawn where the item is made."""

    def __init__(self, drop: TADropEdge) -> None:
        self.drop = drop

    def __len__(self) -> int:
        return 6

    def __getitem__(self, place: int) -> Tensor:
        return self.drop.mask(ARCS, PROB)


class Scored(Dataset[Tensor]):
    """Graphs that pass through the transforms where they are asked for."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, place: int) -> Tensor:
        ring = torch.arange(5 + place)
        data = Data(edge_index=torch.stack((ring, (ring + 1) % len(ring))), num_nodes=len(ring))
        return AddKeepProbability(keep_prob=0.5)(AddResistance(q=2)(data)).edge_keep_prob.sum()


def _workers() -> Iterator[tuple[str, Check]]:
    fork = [("fork", count, keep) for count in (1, 2, 3) for keep in (False, True)]
    rest = [("spawn", 1, False), ("spawn", 2, True)]
    for start, count, keep in fork + rest:
        told = f"{count} {'lasting ' if keep else ''}{start} workers"
        setting = {"num_workers": count, "persistent_workers": keep, "multiprocessing_context": start}
        yield f"{told}: advance='manual' and share_memory()", _child(_shared, setting)
        if start == "fork" or not keep:
            yield f"{told}: advance='call'", _child(_unshared, setting, "call", "cannot count calls")
        if start == "fork":
            yield f"{told}: advance='manual', not shared", _child(_unshared, setting, "manual", "share_memory()")
        if not keep:
            yield f"{told}: transforms", _child(_transformed, setting)
            yield f"{told}: eval()", _child(_evaluated, setting)


def _child(function: Callable[..., None], *arguments: object) -> Check:
    return partial(_in_child, function, arguments)


def _in_child(function: Callable[..., None], arguments: tuple[object, ...], folder: Path) -> None:
    """In a forked child, since those who run these cases may not be allowed to have children of their own."""

    def run() -> None:
        multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
        warnings.simplefilter("ignore")  # of more workers than cores
        function(*arguments)

    ended = forked(run, folder, seconds=100)
    assert ended.code == 0, str(ended)


def _shared(setting: dict[str, object]) -> None:
    drop = TADropEdge(seed=5, advance="manual")
    drop.share_memory()
    loader = DataLoader(Drawing(drop), batch_size=None, **setting)  # type: ignore[arg-type]
    for epoch in (0, 1, 5):
        drop.set_epoch(epoch)
        assert all(torch.equal(mask, mask_of(epoch, seed=5)) for mask in loader), f"wrong masks in epoch {epoch}"


def _unshared(setting: dict[str, object], advance: str, words: str) -> None:
    with refused("TADropEdge(", words):
        list(DataLoader(Drawing(TADropEdge(advance=advance)), batch_size=None, **setting))  # type: ignore[arg-type]


def _transformed(setting: dict[str, object]) -> None:
    found = list(DataLoader(Scored(), batch_size=None, **setting))  # type: ignore[arg-type]
    assert found == [Scored()[place] for place in range(4)]


def _evaluated(setting: dict[str, object]) -> None:
    drop = TADropEdge().eval()
    assert all(mask.all() for mask in DataLoader(Drawing(drop), batch_size=None, **setting))  # type: ignore[arg-type]


# --- traced, scripted, exported and compiled programs ---------------------------------------------------------------


def _programs() -> Iterator[tuple[str, Check]]:
    for advance in ("call", "manual"):
        yield f"torch.jit.trace of advance={advance!r}", partial(_traced, advance)
    yield "torch.jit.trace in eval()", _traced_in_evaluation
    yield "torch.jit.script", partial(_scripted, lambda: TADropEdge())
    yield "torch.jit.script of a model", partial(_scripted, lambda: nn.Sequential(TADropEdge()).eval())
    yield "torch.fx.symbolic_trace", _symbolic
    for strict in (False, True):
        yield f"torch.export, strict={strict}", partial(_exported, strict)
    for backend in ("eager", "aot_eager", "inductor"):
        yield f"torch.compile to one graph by {backend}", partial(_compiled, backend)


@contextmanager
def quietly() -> Iterator[None]:
    """Compilers warn of what is not ours, and keep what they compiled."""
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch._dynamo.reset()


def _traced(advance: str, folder: Path) -> None:
    with quietly(), refused("torch.jit.trace", "eval()"):
        torch.jit.trace(Net(advance=advance), (ARCS, PROB))


def _traced_in_evaluation(folder: Path) -> None:
    with quietly():
        traced = torch.jit.trace(Net().eval(), (ARCS, PROB))
    assert traced(ARCS[:, :5], PROB[:5]).tolist() == [True] * 5


def _scripted(make: Callable[[], nn.Module], folder: Path) -> None:
    with quietly(), refused("torch.jit.script", "torch.compile"):
        torch.jit.script(make())


def _symbolic(folder: Path) -> None:
    with refused("edge_index must be a tensor"):
        torch.fx.symbolic_trace(Net())


def _exported(strict: bool, folder: Path) -> None:
    with quietly():
        program = torch.export.export(Net(seed=4), (ARCS, PROB), strict=strict).module()
        for epoch in range(3):
            assert torch.equal(program(ARCS, PROB), mask_of(epoch, seed=4))
        with refused("edge_keep_prob must lie in [0, 1]", kind=RuntimeError):
            program(ARCS, PROB * torch.nan)


def _compiled(backend: str, folder: Path) -> None:
    with quietly():
        net = Net(seed=9)
        program = torch.compile(net, backend=backend, fullgraph=True)
        for epoch in range(4):
            assert torch.equal(program(ARCS, PROB), mask_of(epoch, seed=9))
        assert int(net.drop.epoch) == 4


# --- probabilities outside of [0, 1] --------------------------------------------------------------------------------


def _values() -> Iterator[tuple[str, Check]]:
    for name, value in OUTSIDE.items():
        yield f"a probability of {name}", partial(_outside, value)
        yield f"a probability of {name}, compiled", partial(_outside_compiled, value, "aot_eager")
    yield "a probability of nan, compiled by inductor", partial(_outside_compiled, torch.nan, "inductor")
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.int64, torch.uint8):
        yield f"probabilities in {dtype}", partial(_other_type, dtype)
    yield "no arcs, compiled", _nothing


def _with(value: float) -> Tensor:
    return torch.cat((PROB[:50], PROB.new_tensor([value]), PROB[51:]))


def _outside(value: float, folder: Path) -> None:
    drop = TADropEdge()
    with refused("edge_keep_prob must lie in [0, 1]"):
        drop.mask(ARCS, _with(value))
    assert torch.equal(drop.mask(ARCS, PROB), mask_of(0)), "a refused call has moved the epoch"


def _outside_compiled(value: float, backend: str, folder: Path) -> None:
    with quietly():
        program = torch.compile(Net(), backend=backend, fullgraph=True)
        assert torch.equal(program(ARCS, PROB), mask_of(0))
        with refused("edge_keep_prob must lie in [0, 1]", kind=RuntimeError):
            program(ARCS, _with(value))


def _other_type(dtype: torch.dtype, folder: Path) -> None:
    prob = (torch.arange(96) % 2 * (0.3 if dtype.is_floating_point else 1)).to(dtype)
    expected = sample_edges(prob.double(), pairs=ARCS)
    assert torch.equal(TADropEdge().mask(ARCS, prob), expected)
    with quietly():
        assert torch.equal(torch.compile(Net(), backend="aot_eager", fullgraph=True)(ARCS, prob), expected)


def _nothing(folder: Path) -> None:
    with quietly():
        assert torch.compile(Net(), backend="aot_eager", fullgraph=True)(ARCS[:, :0], PROB[:0]).shape == (0,)


# --- passes: recomputed, without gradients, mixed precision ---------------------------------------------------------


def _passes() -> Iterator[tuple[str, Check]]:
    for reentrant in (False, True):
        yield f"checkpointing, advance='call', use_reentrant={reentrant}", partial(_forgetful, reentrant)
        yield f"checkpointing, advance='manual', use_reentrant={reentrant}", partial(_recomputed, reentrant)
    modes: dict[str, Callable[[], object]] = {
        "no_grad": torch.no_grad,
        "inference_mode": torch.inference_mode,
        "autocast": partial(torch.autocast, "cpu", torch.bfloat16),
    }
    for name, mode in modes.items():
        yield f"under {name}", partial(_under, mode)
    yield "eval() and train() in turns", _switched
    yield "functional_call with another epoch", _functional
    yield "vmap over seeds", _vectorised


def _once(drop: TADropEdge, reentrant: bool) -> Tensor:
    values = torch.ones(96, requires_grad=True)
    out = checkpoint(lambda x: (x * x * drop.mask(ARCS, PROB)).sum(), values, use_reentrant=reentrant)
    out.backward()
    assert values.grad is not None
    return values.grad


def _forgetful(reentrant: bool, folder: Path) -> None:
    with refused("gradient checkpointing", "advance='manual'"):
        _once(TADropEdge(), reentrant)


def _recomputed(reentrant: bool, folder: Path) -> None:
    drop = TADropEdge(advance="manual")
    for epoch in range(3):
        assert torch.equal(_once(drop, reentrant), 2.0 * mask_of(epoch))
        drop.next_epoch()


def _under(mode: Callable[[], object], folder: Path) -> None:
    drop = TADropEdge()
    with mode():  # type: ignore[attr-defined]
        masks = [drop.mask(ARCS, PROB) for _ in range(3)]
    assert all(torch.equal(mask, mask_of(epoch)) for epoch, mask in enumerate([*masks, drop.mask(ARCS, PROB)]))


def _switched(folder: Path) -> None:
    drop = TADropEdge()
    for epoch in range(5):
        assert torch.equal(drop.train().mask(ARCS, PROB), mask_of(epoch))
        assert drop.eval().mask(ARCS, PROB).all()


def _functional(folder: Path) -> None:
    net, epoch = Net(), torch.tensor(8)
    assert torch.equal(torch.func.functional_call(net, {"drop.epoch": epoch}, (ARCS, PROB)), mask_of(8))
    assert (int(epoch), int(net.drop.epoch)) == (9, 0)


def _vectorised(folder: Path) -> None:
    net, seeds = Net(advance="manual"), torch.arange(4)
    masks = torch.vmap(lambda seed: torch.func.functional_call(net, {"drop.seed": seed}, (ARCS, PROB)))(seeds)
    assert torch.equal(masks, sample_edges(PROB, seed=seeds, pairs=ARCS))


# --- copies ---------------------------------------------------------------------------------------------------------


def _copies() -> Iterator[tuple[str, Check]]:
    ways: dict[str, Callable[[TADropEdge], TADropEdge]] = {
        "deepcopy": copy.deepcopy,
        "pickle": lambda drop: pickle.loads(pickle.dumps(drop)),
        "torch.save": _saved,
        "half()": lambda drop: copy.deepcopy(drop).half(),
        "to(bfloat16)": lambda drop: copy.deepcopy(drop).to(torch.bfloat16),
        "double()": lambda drop: copy.deepcopy(drop).double(),
        "state_dict": _loaded,
        "state_dict by assignment": partial(_loaded, assign=True),
        "share_memory": lambda drop: copy.deepcopy(drop).share_memory(),
    }
    for name, way in ways.items():
        yield f"copied by {name}", partial(_copied, way)
    yield "the state_dict of version 0.1, strictly", _old_state
    yield "an epoch of 63 bits", _large_epoch
    yield "DistributedDataParallel, two processes", _child(_distributed)


def _saved(drop: TADropEdge) -> TADropEdge:
    file = io.BytesIO()
    torch.save(drop, file)
    file.seek(0)
    found: TADropEdge = torch.load(file, weights_only=False)
    return found


def _loaded(drop: TADropEdge, assign: bool = False) -> TADropEdge:
    other = TADropEdge()
    other.load_state_dict(copy.deepcopy(drop.state_dict()), assign=assign)
    return other


def _copied(way: Callable[[TADropEdge], TADropEdge], folder: Path) -> None:
    drop = TADropEdge(seed=-2)
    drop.mask(ARCS, PROB)
    other = way(drop)
    for each in (drop, other, other, drop):  # they count apart from each other
        assert torch.equal(each.mask(ARCS, PROB), mask_of(int(each.epoch) - 1, seed=-2))
    assert (int(drop.epoch), int(other.epoch)) == (3, 3)
    assert drop.epoch.dtype == other.epoch.dtype == torch.int64


def _old_state(folder: Path) -> None:
    drop = TADropEdge()
    drop.load_state_dict({"seed": torch.tensor(11), "epoch": torch.tensor(5)}, strict=True)
    assert torch.equal(drop.mask(ARCS, PROB), mask_of(5, seed=11))
    assert {name: int(value) for name, value in drop.state_dict().items()} == {"seed": 11, "epoch": 6}


def _large_epoch(folder: Path) -> None:
    drop = TADropEdge(seed=2**64 - 1, advance="manual")
    drop.set_epoch(2**63 - 1)
    assert torch.equal(drop.mask(ARCS, PROB), mask_of(2**63 - 1, seed=2**64 - 1))


def _distributed() -> None:
    store = Path("store").absolute()
    processes = [multiprocessing.get_context("fork").Process(target=_rank, args=(rank, store)) for rank in (0, 1)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]


class Weighted(nn.Module):
    """A model with a parameter, which DistributedDataParallel asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.drop, self.weight = TADropEdge(), nn.Parameter(torch.ones(()))

    def forward(self, edge_index: Tensor, prob: Tensor) -> Tensor:
        return self.weight * self.drop.mask(edge_index, prob)


def _rank(rank: int, store: Path) -> None:
    """Every rank draws the same subgraph of the whole graph in the same step."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    model = nn.parallel.DistributedDataParallel(Weighted())
    for epoch in range(3):
        out = model(ARCS, PROB)
        out.sum().backward()
        assert torch.equal(out.detach().bool(), mask_of(epoch))
    torch.distributed.destroy_process_group()


# --- by rule --------------------------------------------------------------------------------------------------------


def _rules() -> Iterator[tuple[str, Check]]:
    for name, rule in RULES.items():
        yield f"8 threads draw by {name}", partial(_threads_by_rule, rule)
        yield f"2 fork workers: {name}, advance='call'", _child(_workers_by_rule, rule, "call")
        yield f"2 fork workers: {name}, advance='manual' and share_memory()", _child(_workers_by_rule, rule, "manual")
        yield f"torch.jit.trace of {name}", partial(_traced_by_rule, rule)
        yield f"torch.export of {name}", partial(_exported_by_rule, rule)
        for backend in ("eager", "aot_eager", "inductor"):
            yield f"{name}, compiled by {backend}", partial(_compiled_by_rule, rule, backend)
        for reentrant in (False, True):
            yield f"checkpointing, {name}, use_reentrant={reentrant}", partial(_recomputed_by_rule, rule, reentrant)
        yield f"{name} under no_grad and inference_mode", partial(_modes_by_rule, rule)
        yield f"{name}, copied", partial(_copied_by_rule, rule)


def ruled_mask(rule: dict[str, Any], epoch: int, seed: int = 0) -> Tensor:
    """The mask by the pure function: all edges of this graph have the same probability."""
    graph = Graph.from_edge_index(KNOWN)
    prob = torch.full((graph.num_edges,), 0.75, dtype=torch.float64)
    options: dict[str, Any] = {"connected": graph} if "connected" in rule else {}
    mask = sample_edges(prob, seed=seed, epoch=epoch, pairs=graph.pairs, exact="exact" in rule, **options)
    return graph.to_arcs(mask)


class Ruled(nn.Module):
    """A model with one TADropEdge that computes probabilities itself."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.drop = TADropEdge(**settings)

    def forward(self, edge_index: Tensor) -> Tensor:
        return self.drop.mask(edge_index)


def _threads_by_rule(rule: dict[str, Any], folder: Path) -> None:
    drop, masks = TADropEdge(**rule), list[Tensor]()
    in_threads(8, lambda: masks.extend(drop.mask(KNOWN) for _ in range(10)))
    same(masks, [ruled_mask(rule, epoch) for epoch in range(80)])


class DrawingByRule(Drawing):
    """Six items, each a mask by rule."""

    def __getitem__(self, place: int) -> Tensor:
        return self.drop.mask(KNOWN)


def _workers_by_rule(rule: dict[str, Any], advance: str) -> None:
    drop = TADropEdge(seed=5, advance=advance, **rule)
    drop.share_memory()
    loader = DataLoader(DrawingByRule(drop), batch_size=None, num_workers=2, multiprocessing_context="fork")
    if advance == "call":
        with refused("TADropEdge(", "cannot count calls"):
            list(loader)
        return
    for epoch in (0, 3):
        drop.set_epoch(epoch)
        assert all(torch.equal(mask, ruled_mask(rule, epoch, seed=5)) for mask in loader)


def _traced_by_rule(rule: dict[str, Any], folder: Path) -> None:
    with quietly(), refused("torch.jit.trace", "eval()"):
        torch.jit.trace(Ruled(**rule), (KNOWN,))


def _exported_by_rule(rule: dict[str, Any], folder: Path) -> None:
    with quietly(), refused("can be exported", "drop.probabilities(edge_index)"):
        torch.export.export(Ruled(**rule), (KNOWN,), strict=False)


def _compiled_by_rule(rule: dict[str, Any], backend: str, folder: Path) -> None:
    with quietly():
        net = Ruled(seed=9, **rule)
        program = torch.compile(net, backend=backend)
        for epoch in range(3):
            assert torch.equal(program(KNOWN), ruled_mask(rule, epoch, seed=9))
        assert int(net.drop.epoch) == 3


def _recomputed_by_rule(rule: dict[str, Any], reentrant: bool, folder: Path) -> None:
    def once(drop: TADropEdge) -> Tensor:
        values = torch.ones(192, requires_grad=True)
        checkpoint(lambda x: (x * x * drop.mask(KNOWN)).sum(), values, use_reentrant=reentrant).backward()
        assert values.grad is not None
        return values.grad

    assert torch.equal(once(TADropEdge(advance="manual", **rule)), 2.0 * ruled_mask(rule, 0))
    with refused("gradient checkpointing", "advance='manual'"):
        once(TADropEdge(**rule))


def _modes_by_rule(rule: dict[str, Any], folder: Path) -> None:
    drop = TADropEdge(**rule)
    for epoch, mode in enumerate((torch.inference_mode, torch.no_grad, torch.enable_grad)):
        with mode():
            assert torch.equal(drop.mask(KNOWN), ruled_mask(rule, epoch))
            assert drop.eval().mask(KNOWN).all()
            drop.train()


def _copied_by_rule(rule: dict[str, Any], folder: Path) -> None:
    for way in (copy.deepcopy, lambda drop: pickle.loads(pickle.dumps(drop)), _saved):
        for seen in (False, True):
            drop = TADropEdge(seed=-2, **rule)
            if seen:
                drop.mask(KNOWN)
            other = way(drop).half().double()
            assert torch.equal(other.mask(KNOWN), ruled_mask(rule, int(seen), seed=-2))
            assert set(other.state_dict()) == {"seed", "epoch"}
