"""What is cleared up between tutorials, which run in one process with the build."""

from __future__ import annotations

from tadropedge.registry import DATASETS, MEASURES, NETWORKS, SCORES, STRATEGIES

SHIPPED = [(registry, tuple(registry)) for registry in (SCORES, STRATEGIES, NETWORKS, DATASETS, MEASURES)]


def forget(settings: object, script: object) -> None:
    """Remove what a tutorial has added to the registries; the gallery calls it before and after each of them."""
    for registry, shipped in SHIPPED:
        for name in set(registry) - set(shipped):
            del registry[name]
