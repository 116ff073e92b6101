// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorcraft/device/index.h"
#include "tensorcraft/device/attention/params.h"

// Which rows of q, k and v belong together, on devices and hosts.
namespace tensorcraft::kernel::attention_tiles {

// A request: its rows of q, and of k and v the ones in use. Rows of a ragged batch in front of the
// first request and behind the last one are a request without number that has no key.
struct Request {
  int number;  // -1: none
  int first, queries;
  int first_key, keys;
  Window window;
  // The keys that row i of q sees.
  TC_HOST_DEVICE KeyRange seen(int i) const {
    return keys_of(window, keys, place_of_query(queries, keys, i - first));
  }
};

// Where span s of the rows of a ragged batch begins.
TC_HOST_DEVICE int start_of_span(const Params& p, int s) {
  if (s == 0) return 0;
  if (s > p.requests + 1) return p.seq_q;
  return clamped(integer_at(p.q_starts, s - 1, p.wide_q_starts), 0, p.seq_q);
}

// Of `count` keys those in use.
TC_HOST_DEVICE int keys_in_use(const Params& p, int request, int count) {
  if (!p.key_lengths) return count;
  return clamped(integer_at(p.key_lengths, request, p.wide_lengths), 0, count);
}
TC_HOST_DEVICE Window window_of_request(const Params& p, int request) {
  const bool is_causal = p.causal_each && p.causal_each[request];
  return {p.window.left, is_causal ? 0 : p.window.right};
}

// Request b of a batch that is not ragged.
TC_HOST_DEVICE Request whole_request(const Params& p, int b) {
  return {b, 0, p.seq_q, 0, keys_in_use(p, b, p.seq_k), window_of_request(p, b)};
}
TC_HOST_DEVICE Request request_of_span(const Params& p, int s) {
  const int first = start_of_span(p, s), end = start_of_span(p, s + 1), number = s - 1;
  Request r{number, first, end < first ? 0 : end - first, 0, 0, p.window};
  if (number < 0 || number >= p.requests) {
    r.number = -1;
    return r;
  }
  int end_key = p.seq_k;
  if (p.k_starts) {
    r.first_key = clamped(integer_at(p.k_starts, number, p.wide_k_starts), 0, p.seq_k);
    end_key = clamped(integer_at(p.k_starts, number + 1, p.wide_k_starts), r.first_key, p.seq_k);
  }
  r.keys = keys_in_use(p, number, end_key - r.first_key);
  r.window = window_of_request(p, number);
  return r;
}

// The last span s of a ragged batch whose place, place_of(s), is at most `at`. Places grow with s.
template <class PlaceOf>
TC_HOST_DEVICE int last_span(const Params& p, int at, const PlaceOf& place_of) {
  int low = 0, high = spans(p);
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (place_of(middle) <= at ? low : high) = middle;
  }
  return low;
}

// The request of row i of batch b.
TC_HOST_DEVICE Request request_of(const Params& p, int b, int i) {
  if (!p.q_starts) return whole_request(p, b);
  return request_of_span(p, last_span(p, i, [&](int s) { return start_of_span(p, s); }));
}

// Queries of one request, and the keys that they see, of which the first is in the first tile.
struct QueryTile {
  int request;          // -1: none
  int first, rows;      // rows of q; 0: this tile of a ragged batch has none
  int first_key, keys;  // rows of k and v
  int at;               // the key at which the first query stands
  Window window;
  TC_HOST_DEVICE KeyRange seen(int row) const { return keys_of(window, keys, at + row); }
  // Behind the last key that a query sees.
  TC_HOST_DEVICE int end() const { return rows == 0 ? 0 : seen(rows - 1).end; }
};

// Tile number t of query_tiles(p, queries_of(C)) of batch b; tiles of keys that no query sees are
// left out.
template <Config C>
TC_DEVICE QueryTile query_tile(const Params& p, int b, int t) {
  constexpr bool has_ranges = C.options >= kRanges;
  constexpr int queries = queries_of(C);
  Request r{b, 0, p.seq_q, 0, keys_in_use(p, b, p.seq_k), p.window};
  if (has_ranges && p.q_starts) {  // tiles of span s begin at number start / queries + s
    const auto number = [&](int s) { return start_of_span(p, s) / queries + s; };
    const int s = last_span(p, t, number);
    r = request_of_span(p, s);
    t -= number(s);
  } else if (has_ranges) {
    r.window = window_of_request(p, b);
  }
  const int rest = r.queries - t * queries;
  QueryTile tile{r.number,
                 r.first + t * queries,
                 rest < 0         ? 0
                 : rest < queries ? rest
                                  : queries,
                 r.first_key,
                 r.keys,
                 place_of_query(r.queries, r.keys, t * queries),
                 r.window};
  if constexpr (has_ranges) {
    const int skipped = tile.seen(0).begin / C.block_n * C.block_n;
    tile.first_key += skipped;
    tile.keys -= skipped;
    tile.at -= skipped;
  }
  return tile;
}

}  // namespace tensorcraft::kernel::attention_tiles
