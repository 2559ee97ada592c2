#include "agents/strategies/nd_cao/frames.hh"

#include <bit>

namespace orrery::nd_cao {
namespace {

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>((value >> (8 * i)) & 0xff);
}

class Reader {
 public:
  Reader(const std::string& text, std::size_t size, const char* what) : text_(text) {
    if (text.size() != size) {
      throw Error(std::string(what) + " frame of " + std::to_string(text.size()) +
                  " bytes; expected " + std::to_string(size));
    }
  }
  std::uint64_t take(int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) {
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(text_[at_++])) << (8 * i);
    }
    return value;
  }
  std::uint32_t u32() { return static_cast<std::uint32_t>(take(4)); }

 private:
  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string pack(const ForwardFrame& frame) {
  std::string out;
  put(out, frame.k, 4);
  put(out, frame.flags, 4);
  put(out, frame.reference, 4);
  put(out, frame.set, 4);
  return out;
}

std::string pack(const ResultFrame& frame) {
  std::string out;
  put(out, frame.k, 4);
  put(out, frame.flags, 4);
  put(out, std::bit_cast<std::uint64_t>(frame.loss), 8);
  return out;
}

std::string pack(const NoteFrame& frame) {
  std::string out;
  put(out, frame.block, 4);
  put(out, frame.newest, 4);
  return out;
}

ForwardFrame unpack_forward(const std::string& header) {
  Reader reader(header, 16, "forward");
  ForwardFrame frame;
  frame.k = reader.u32();
  frame.flags = reader.u32();
  frame.reference = reader.u32();
  frame.set = reader.u32();
  return frame;
}

ResultFrame unpack_result(const std::string& header) {
  Reader reader(header, 16, "result");
  ResultFrame frame;
  frame.k = reader.u32();
  frame.flags = reader.u32();
  frame.loss = std::bit_cast<double>(reader.take(8));
  return frame;
}

NoteFrame unpack_note(const std::string& header) {
  Reader reader(header, 8, "note");
  NoteFrame frame;
  frame.block = reader.u32();
  frame.newest = reader.u32();
  return frame;
}

}  // namespace orrery::nd_cao
