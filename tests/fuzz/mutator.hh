// Inputs that nobody would write, made from those that somebody did: the same from the same seed.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace orrery::fuzz {

class Mutator {
 public:
  Mutator(std::vector<std::string> corpus, std::uint64_t seed)
      : corpus_(std::move(corpus)), random_(seed) {}

  std::string next() {
    std::string text = any();
    const int changes = 1 + below(8);
    for (int i = 0; i < changes; ++i) change(text);
    constexpr std::size_t longest = 20'000;
    if (text.size() > longest) text.resize(longest);
    return text;
  }

 private:
  int below(std::size_t n) { return n == 0 ? 0 : static_cast<int>(random_() % n); }
  std::size_t place(const std::string& text) {
    return static_cast<std::size_t>(below(text.size() + 1));
  }
  const std::string& any() { return corpus_[static_cast<std::size_t>(below(corpus_.size()))]; }

  std::string piece(const std::string& text) {
    const std::size_t at = place(text);
    return text.substr(at, static_cast<std::size_t>(below(60)));
  }
  // A line, whole: what formats of lines are sensitive to.
  std::string line(const std::string& text) {
    const std::size_t at = std::min(text.find('\n', place(text)), text.size());
    return text.substr(at, text.find('\n', at + 1) - at);
  }

  void change(std::string& text) {
    // clang-format off
    static const std::vector<std::string> awkward{
        "", "-", "- ", ": ", "{", "}", "[", "]", "&a ", "*a", "<<: ", "!!str ", "\t", "\r\n",
        "\"", "'", "|", ">", "#", "0", "-1", "1e999", "nan", "99999999999999999999", "0x10", "~",
        "null", "true", "\xff\xfe", "\xe2\x82", std::string(1, '\0'), "---\n", "...\n", "%", "->",
        "board[0-999999999]", "[[[[[[[[", "{{{{{{{{", "ms", "Mbit/s", "1/0", "100%", "-5ms"};
    // clang-format on
    switch (below(8)) {
      case 0:
        if (!text.empty()) text[place(text) % text.size()] ^= static_cast<char>(1 << below(8));
        break;
      case 1:
        text.erase(place(text), static_cast<std::size_t>(below(40)));
        break;
      case 2:
        text.insert(place(text), piece(text));
        break;
      case 3:
        text.insert(place(text), piece(any()));
        break;
      case 4:
        text.insert(place(text), awkward[static_cast<std::size_t>(below(awkward.size()))]);
        break;
      case 5:
        text.insert(std::min(text.find('\n', place(text)), text.size()), line(any()));
        break;
      case 6:
        text.resize(place(text));
        break;
      default: {
        const std::string old = line(text);
        const std::size_t at = text.find(old);
        if (!old.empty() && at != std::string::npos) text.replace(at, old.size(), line(any()));
      }
    }
  }

  std::vector<std::string> corpus_;
  std::mt19937_64 random_;
};

}  // namespace orrery::fuzz
