// Links by name, with the source of their figures.
#pragma once

#include <span>
#include <string_view>

#include "netshape/link.hh"

namespace orrery::netshape {

/// A node's link to what it is connected by. Delays are one-way and a link's own: two nodes behind
/// such links are the sum of four directions apart, there and back.
struct LinkProfile {
  std::string_view name;
  std::string_view what;
  LinkSpec up;    ///< from the node
  LinkSpec down;  ///< to it
  std::string_view source;
};

/// In the order of the documentation.
std::span<const LinkProfile> link_profiles();
/// Nullptr: there is none of that name.
const LinkProfile* find_link_profile(std::string_view name);

}  // namespace orrery::netshape
