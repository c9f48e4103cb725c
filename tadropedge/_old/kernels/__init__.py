"""Triton kernels, imported only with a GPU, or with Triton's interpreter in its place (TRITON_INTERPRET=1)."""

from tadropedge._old.kernels.adam import adam
from tadropedge._old.kernels.coins import coins, keys, row_of_coins
from tadropedge._old.kernels.compact import Kept, Whole, compact
from tadropedge._old.kernels.dropout import dropout
from tadropedge._old.kernels.finish import Coins, Norm, batch_statistics, finish, finish_gradients
from tadropedge._old.kernels.spmm import spmm

__all__ = [
    "Coins",
    "Kept",
    "Norm",
    "Whole",
    "adam",
    "batch_statistics",
    "coins",
    "compact",
    "dropout",
    "finish",
    "finish_gradients",
    "keys",
    "row_of_coins",
    "spmm",
]
