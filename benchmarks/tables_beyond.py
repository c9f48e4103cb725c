"""The tables of what goes beyond one machine, and of the largest graphs on one."""

from __future__ import annotations

from typing import Any

from table import NOTHING_YET, from_docs, load, page, present


def workers() -> str:
    """A search without Ray, and with 1 and 2 workers."""
    name = "ray-cpu.json"
    if not present(name):
        return NOTHING_YET
    rows = [
        [str(row["workers"]), f"{row['start_seconds']:.1f} s", f"{row['overhead_ms_per_batch']:.1f} ms",
         f"{row['seconds']:.1f} s", f"{row['speed']:.2f} ×"]
        for row in load(name)["ray_engine"]
    ]  # fmt: skip
    columns = ("workers", "start, once", "overhead per batch", "all batches", "speed relative to one worker")
    return page(columns, rows, (0,), [from_docs(name)])


def partitions() -> str:
    """Cuts and boundaries of a partition among four processes."""
    name = "partition.json"
    if not present(name):
        return NOTHING_YET
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in load(name)["partitions"]:
        if row["processes"] == 4:
            found.setdefault(row["graph"], {})[row["partition"]] = row
    ways = ("random", "multilevel", "metis")
    rows = []
    for graph, by_way in found.items():
        one = by_way["random"]
        cells = [graph, f"{one['nodes']:,}", f"{one['pairs']:,}"]
        cells += [f"{by_way[way][what]:,}" for what in ("edges", "boundary") for way in ways]
        rows.append([*cells, *(f"{by_way[way]['seconds']:.1f} s" for way in ways[1:])])
    columns = ("graph", "nodes", "edges", "cut at random", "multilevel", "METIS")
    columns += ("boundary at random", "multilevel", "METIS", "time, multilevel", "METIS")
    return page(columns, rows, (0,), [from_docs(name)])


def spread() -> str:
    """Epochs of the ordinary trainer and of a graph spread over processes."""
    files = present("distributed-cpu.json", "distributed-cuda.json")
    rows = []
    for name in files:
        for row in load(name)["distributed"]:
            way = {"alone": "ordinary", "spread": "spread"}[row["way"]]
            cells = [row["graph"], f"{row['edges']:,}", row["device"], f"{row['keep_ratio']:g}", way]
            cells += [str(row["processes"]), f"{row['seconds_per_epoch']:.3g} s"]
            cells += [f"{row['edges_per_second_and_process']:,}", f"{row['speedup']:.2f} ×"]
            cells += ["" if row["boundary_rows"] is None else f"{row['boundary_rows']:,}"]
            rows.append([*cells, "" if row["peak_gib"] is None else f"{row['peak_gib']:g} GiB"])
    columns = ("graph", "edges", "device", "keep ratio", "trainer", "processes", "epoch")
    columns += ("edges per second and process", "speed relative to the ordinary trainer", "boundary rows", "GPU memory")
    return page(columns, rows, (0, 2, 4), map(from_docs, files)) if rows else NOTHING_YET


def ranks() -> str:
    """The solver slepc on ranks beside our own ladder."""
    name = "slepc.json"
    if not present(name):
        return NOTHING_YET
    rows = []
    for row in load(name)["slepc"]:
        called = f"`slepc`, {row['ranks']} rank{'s' * (row['ranks'] > 1)}" if row["ranks"] else "**ours**"
        if "error" in row:
            rows.append([row["graph"], row["laplacian"], called, row["error"], "", "", "", ""])
            continue
        called += "" if row["ranks"] else f" (`{row['solver']}`)"
        each = ", ".join(f"{peak / 1e6:.0f}" for peak in row["memory"])
        rows.append(
            [row["graph"], row["laplacian"], called, f"{row['seconds']:.1f} s", ", ".join(map(str, row["steps"])),
             f"{row['process'] / 1e6:.0f} MB", f"{each} MB" if each else "",
             f"{row['differ']:.0e}" if "differ" in row else ""]
        )  # fmt: skip
    columns = ("graph", "Laplacian", "solver", "time", "steps", "our process", "each rank", "scores differ by")
    return page(columns, rows, (0, 1, 2), [from_docs(name)])


def mini_batches() -> str:
    """A step on sampled neighbours beside PyG's."""
    files = present("mini-batches-cpu.json", "mini-batches-cuda.json")
    rows = []
    for name in files:
        for row in load(name)["mini_batches"]:
            cells = [row["graph"], f"{row['edges']:,}", row["network"], row["device"], f"{row['milliseconds']:.0f} ms"]
            theirs = "with" if row["pyg_samples"] else "without"
            cells += [f"{row['sampling_milliseconds']:.0f} ms", f"{row['pyg_milliseconds']:.0f} ms, {theirs} sampling"]
            rows.append([*cells, f"{row['times_faster']:.1f} ×"])
    columns = ("graph", "edges", "network", "device", "our step", "of it sampling", "PyG's step", "ratio")
    return page(columns, rows, (0, 2, 3), map(from_docs, files)) if rows else NOTHING_YET


def cliques() -> str:
    """The collaboration graph at full size."""
    files = present("collaboration-cpu.json", "collaboration-cuda.json")
    rows = [
        [row["graph"], row["quantity"], row["device"], f"{row['seconds']:.1f} s", f"{row['cpu_seconds']:.0f} s",
         f"{row['peak'] / 1e9:.1f} GB"]
        for name in files
        for row in load(name)["collaboration"]
    ]  # fmt: skip
    columns = ("graph", "quantity", "device", "time", "CPU time", "peak memory")
    return page(columns, rows, (0, 1, 2), map(from_docs, files)) if rows else NOTHING_YET


HUNDRED = ("hundred-million-cpu.json", "hundred-million-cuda.json")


def measured_at_hundred_million() -> set[tuple[str, str]]:
    """The quantities and devices that need not be extrapolated to 10⁸ edges."""
    found = (row for name in present(*HUNDRED) for row in load(name)["rows"])
    return {(row["quantity"], row["device"]) for row in found if not row["status"]}


def hundred_million() -> str:
    """A graph of 10⁸ edges from file to files."""
    files, rows = present(*HUNDRED), []
    for name in files:
        for row in load(name)["rows"]:
            if row["status"]:
                rows.append([row["quantity"], row["device"], "", "", row["status"], "", "", ""])
                continue
            files_of = ("csv and npz" if row.get("csv", True) else "npz") if row.get("files", True) else "none"
            cells = [row["quantity"], row["device"], f"{row['edges']:,}", files_of, f"{row['seconds']:,.0f} s"]
            cells += [f"{row['writing']:,.0f} s", f"{row['peak'] / 1e9:.1f} GB", f"{row['bytes_per_edge']:.0f}"]
            rows.append(cells)
    columns = ("quantity", "device", "edges", "files", "time", "of it for them", "peak memory", "bytes per edge")
    return page(columns, rows, (0, 1, 3), map(from_docs, files)) if rows else NOTHING_YET
