"""Where numba is missing, and how it is started: each in a process of its own."""

import os
import subprocess
import sys


def in_another_process(script, **environment):
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


DIGEST = """
import sys, torch, hashlib
if "{numba}" == "absent": sys.modules["numba"] = None
from tadropedge import Graph, sample_edges, shift_operator
graph = Graph.from_edge_index(torch.randint(0, 200, (2, 600), generator=torch.Generator().manual_seed(0)), 220)
mask = sample_edges(torch.full((graph.num_edges,), 0.5), seed=[0, 1], graph=graph)
x = torch.randn(220, 24, generator=torch.Generator().manual_seed(1)).requires_grad_()
out = shift_operator(graph, mask, normalization="random-walk") @ x
(slope,) = torch.autograd.grad(out[0].square().sum(), x)
print(hashlib.sha256(b"".join(part.detach().numpy().tobytes() for part in (mask, out, slope))).hexdigest())
"""


def test_without_numba_the_reference_runs_with_the_same_bits():
    assert in_another_process(DIGEST.format(numba="absent")) == in_another_process(DIGEST.format(numba="there"))


def test_nothing_loads_numba_before_it_is_needed():
    script = (
        "import sys, tadropedge; tadropedge.Graph.from_edge_index([[0], [1]]).pattern; print('numba' in sys.modules)"
    )
    assert in_another_process(script) == "False"


def test_kernels_run_where_no_cache_can_be_written(tmp_path):
    script = (
        "import numba.core.caching as c; c.CacheImpl._locator_classes.clear();"
        "import torch; from tadropedge import sample_edges; print(sample_edges(torch.ones(3)).tolist())"
    )
    assert in_another_process(script) == "[True, True, True]"
