// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cli/console.hpp"

#include <string>

namespace tensorcraft::cli {

// The points of a roofline as a table: a line for each row of summary_of()'s files, with what the
// device can do at that problem's operations for each byte. Fields are separated by commas and
// quoted if they have to be (RFC 4180); what is not known is empty.
std::string roofline_csv(const Json& files);

}  // namespace tensorcraft::cli
