// What nodes say to each other, besides activations. Fixed layouts, little endian.
#pragma once

#include <cstdint>
#include <string>

#include "agents/transport.hh"

namespace orrery::nd_cao {

/// Channels: what a receiver can wait for from one peer.
inline constexpr std::uint32_t forward_tag = 1;  ///< down the chain, one hop
inline constexpr std::uint32_t result_tag = 2;   ///< from the last node to each
inline constexpr std::uint32_t note_tag = 3;     ///< from each to node 0, async only

/// Heads an activation: 16 bytes. Alone if the activation is the same as an earlier one's.
struct ForwardFrame {
  static constexpr std::uint32_t same = 1;        ///< the tensor of evaluation `reference` again
  static constexpr std::uint32_t reevaluate = 2;  ///< use the best as of result `reference`
  static constexpr std::uint32_t end = 4;         ///< no evaluation follows: k were started in all
  std::uint32_t k = 0;
  std::uint32_t flags = 0;
  std::uint32_t reference = 0;
  std::uint32_t set = 0;  ///< number of the objective set
};

/// The global loss of evaluation k: 16 bytes.
struct ResultFrame {
  static constexpr std::uint32_t best = 1;
  static constexpr std::uint32_t last = 2;
  static constexpr std::uint32_t set_changed = 4;  ///< the next evaluation started is on a new set
  static constexpr std::uint32_t old_set = 8;      ///< was under way when the set changed
  std::uint32_t k = 0;
  std::uint32_t flags = 0;
  double loss = 0;
};

/// "Block has moved": 8 bytes.
struct NoteFrame {
  static constexpr std::uint32_t farewell = 0xffffffff;  ///< as block: the sender is done
  std::uint32_t block = 0;   ///< number in the whole placement, nodes in order
  std::uint32_t newest = 0;  ///< newest evaluation that the move's fit used
};

std::string pack(const ForwardFrame& frame);
std::string pack(const ResultFrame& frame);
std::string pack(const NoteFrame& frame);
/// Each throws Error for a header of another size.
ForwardFrame unpack_forward(const std::string& header);
ResultFrame unpack_result(const std::string& header);
NoteFrame unpack_note(const std::string& header);

}  // namespace orrery::nd_cao
