# SPDX-License-Identifier: Apache-2.0
"""The same operator from Python: center.py LIBRARY"""

import sys

import numpy as np

import tensorcraft as tc

row_center = tc.add_library(sys.argv[1])["row_center"]
x = np.array([[1, 2, 6], [-1, 0, 1]], np.float32)
print(row_center(x))
print(row_center(x, device="simt", variant="naive"))
print(tc.explain("row_center", x, arch="sm_90a"))
