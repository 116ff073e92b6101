// SPDX-License-Identifier: Apache-2.0
#include "tensorcraft/ops/csr/plan.h"
#include "tensorcraft/ops/csr/problem.hpp"

#include "tensorcraft/ops/csr/bucket_chunks.cuh"
#include "tensorcraft/ops/csr/count_chunks.cuh"
#include "tensorcraft/ops/csr/count_columns.cuh"
#include "tensorcraft/ops/csr/count_parts.cuh"
#include "tensorcraft/ops/csr/count_rows.cuh"
#include "tensorcraft/ops/csr/count_tiles.cuh"
#include "tensorcraft/ops/csr/fill_rows.cuh"
#include "tensorcraft/ops/csr/from_dense.cuh"
#include "tensorcraft/ops/csr/offsets.cuh"
#include "tensorcraft/ops/csr/place_chunks.cuh"
#include "tensorcraft/ops/csr/place_parts.cuh"
#include "tensorcraft/ops/csr/place_tiles.cuh"
#include "tensorcraft/ops/csr/report.cuh"
#include "tensorcraft/ops/csr/scan_chunks.cuh"
#include "tensorcraft/ops/csr/scan_runs.cuh"
#include "tensorcraft/ops/csr/sort_columns.cuh"
#include "tensorcraft/ops/csr/spread.cuh"
#include "tensorcraft/ops/csr/starts.cuh"
#include "tensorcraft/ops/csr/summary.cuh"
#include "tensorcraft/ops/csr/to_dense.cuh"

namespace tensorcraft::kernel::csr {
namespace {

using Indices = simt::AnyOf<simt::Types<int32_t>, simt::Types<int64_t>>;
using Elements = simt::AnyOf<simt::Types<int16_t>, simt::Types<int32_t>>;
using Both = simt::Pairs<simt::Types<int16_t, int32_t>, simt::Types<int32_t, int64_t>>;
constexpr auto& kConfigs = simt::kDefaultConfig<Config>;
constexpr std::array kBuckets{kBucketConfig}, kTiles{kTileConfig}, kTileCounts{kTileCountConfig};

}  // namespace

simt::OperatorInstances instances() {
  return {{"report", simt::list<Report, kConfigs>(Indices{})},
          {"summary", simt::list<Summary, kConfigs>(Indices{})},
          {"starts", simt::list<Starts, kConfigs>(Indices{})},
          {"count_rows", simt::list<CountRows, kConfigs>(Elements{})},
          {"count_columns", simt::list<CountColumns, kConfigs>(Indices{})},
          {"offsets", simt::list<Offsets, kConfigs>(Indices{})},
          {"from_dense", simt::list<FromDense, kConfigs>(Both{})},
          {"to_dense", simt::list<ToDense, kConfigs>(Both{})},
          {"fill_rows", simt::list<FillRows, kConfigs>(Both{})},
          {"spread", simt::list<Spread, kConfigs>(Both{})},
          {"count_chunks", simt::list<CountChunks, kConfigs>(Indices{})},
          {"scan_chunks", simt::list<ScanChunks, kConfigs>(Indices{})},
          {"place_chunks", simt::list<PlaceChunks, kConfigs>(Both{})},
          {"bucket_chunks", simt::list<BucketChunks, kBuckets>(Both{})},
          {"scan_runs", simt::list<ScanRuns, kConfigs>(Indices{})},
          {"count_parts", simt::list<CountParts, kBuckets>(simt::AnyOf<simt::Types<>>{})},
          {"place_parts", simt::list<PlaceParts, kBuckets>(Both{})},
          {"count_tiles", simt::list<CountTiles, kTileCounts>(Indices{})},
          {"place_tiles", simt::list<PlaceTiles, kTiles>(Both{})},
          {"sort_columns", simt::list<SortColumns, kConfigs>(Both{})}};
}

}  // namespace tensorcraft::kernel::csr
