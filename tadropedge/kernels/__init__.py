"""Triton kernels, imported only with a GPU, or with Triton's interpreter in its place (TRITON_INTERPRET=1)."""

from tadropedge.kernels.adam import adam
from tadropedge.kernels.dropout import dropout
from tadropedge.kernels.finish import Coins, Norm, batch_statistics, finish, finish_gradients
from tadropedge.kernels.spmm import spmm

__all__ = ["Coins", "Norm", "adam", "batch_statistics", "dropout", "finish", "finish_gradients", "spmm"]
