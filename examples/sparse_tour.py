# SPDX-License-Identifier: Apache-2.0
"""A small graph as a sparse matrix: a product, a transposed view, shortest paths."""

import numpy as np

import tensorcraft as tc

# Four towns; row r has the roads that lead to town r, and how long each is.
data = np.array([2, 7, 3, 1], np.float32)
indices, indptr = np.array([0, 0, 1, 2], np.int32), np.array([0, 0, 1, 3, 4], np.int32)
roads = tc.sparse.csr(data, indices, indptr, (4, 4))
print(roads, roads.analysis)
print(roads @ np.ones(4, np.float32))  # how much road leads to each town
print(roads.T @ np.ones(4, np.float32))  # and from each: a view, not a copy

distance = np.array([0, np.inf, np.inf, np.inf], np.float32)
for _ in range(3):  # the way to a neighbour, and the road from there
    distance = np.minimum(distance, tc.sparse.spmv(roads, distance, combine="x + a", reduce="min"))
print(distance)
