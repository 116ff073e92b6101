# SPDX-License-Identifier: Apache-2.0
import numpy as np

import tensorcraft as tc

scores = np.random.default_rng(0).standard_normal((4, 1000))  # float64, NumPy's default
scores = scores.astype(np.float32)  # float64 is refused, never rounded in silence: convert it
probabilities = tc.softmax(scores)  # NumPy in, NumPy out; torch in, torch out
print(probabilities.sum(axis=1))

a = tc.asarray(scores)  # a tensor on the default device: the GPU where there is one
product = a @ a.T
print(product.shape, product.device)

print(tc.explain(tc.softmax, scores, arch="sm_90a"))  # which variant an H200 would take, and why; none need be here
