#include "agents/activity.hh"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <type_traits>

#include "base/error.hh"

namespace orrery {
namespace {

constexpr std::size_t page_size = 4096;
constexpr std::size_t most_sources = 16;
constexpr char mark_text[] = "orrery activity page, version 1";

std::string seconds(std::int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g s", static_cast<double>(ns) * 1e-9);
  return text;
}

}  // namespace

/// Plain bytes: what a process of another kernel sees.
struct ActivityPage::Contents {
  enum class Kind : std::int32_t { own_code, computing, waiting, sending, sleeping };
  struct Awaited {
    std::int32_t peer;
    std::uint32_t tag;
    std::int64_t number;
  };

  char mark[sizeof mark_text];
  std::int32_t rank;
  std::int32_t incarnation;
  Kind kind;
  std::int32_t sources;  ///< how many of `awaited` hold; of a longer list the first
  std::int64_t time;     ///< since when; of `sleeping`: until when
  KernelSpec kernel;
  Awaited awaited[most_sources];
};

ActivityPage::ActivityPage(int rank, int incarnation) {
  static_assert(sizeof(Contents) <= page_size && std::is_trivially_copyable_v<Contents>);
  void* page =
      ::mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw_errno("map a page");
  page_ = new (page) Contents{};
  page_->rank = rank;
  page_->incarnation = incarnation;
  std::memcpy(page_->mark, mark_text, sizeof mark_text);
}

ActivityPage::~ActivityPage() {
  std::memset(page_->mark, 0, sizeof page_->mark);
  ::munmap(page_, page_size);
}

void ActivityPage::computing(const KernelSpec& kernel, Instant since) {
  page_->kernel = kernel;
  page_->time = since.ns;
  page_->kind = Contents::Kind::computing;
}

void ActivityPage::waiting(std::span<const Source> sources, std::span<const std::int64_t> numbers,
                           Instant since) {
  const std::size_t count = std::min(sources.size(), most_sources);
  for (std::size_t i = 0; i < count; ++i)
    page_->awaited[i] = {sources[i].peer, sources[i].tag, numbers[i]};
  page_->sources = static_cast<std::int32_t>(count);
  page_->time = since.ns;
  page_->kind = Contents::Kind::waiting;
}

void ActivityPage::sending(int peer, std::uint32_t tag, Instant since) {
  page_->awaited[0] = {peer, tag, 0};
  page_->sources = 1;
  page_->time = since.ns;
  page_->kind = Contents::Kind::sending;
}

void ActivityPage::sleeping(Instant until) {
  page_->time = until.ns;
  page_->kind = Contents::Kind::sleeping;
}

void ActivityPage::own_code(Instant since) {
  page_->time = since.ns;
  page_->kind = Contents::Kind::own_code;
}

std::string_view Activity::mark() { return {mark_text, sizeof mark_text}; }

std::optional<Activity> Activity::read(std::span<const char> page) {
  using Contents = ActivityPage::Contents;
  if (page.size() < sizeof(Contents)) return std::nullopt;
  Contents contents;
  std::memcpy(&contents, page.data(), sizeof contents);
  if (std::memcmp(contents.mark, mark_text, sizeof mark_text) != 0) return std::nullopt;
  if (contents.kind < Contents::Kind::own_code || contents.kind > Contents::Kind::sleeping ||
      contents.sources < 0 || contents.sources > static_cast<std::int32_t>(most_sources))
    return std::nullopt;
  Activity activity;
  activity.rank = contents.rank;
  activity.incarnation = contents.incarnation;
  activity.bytes_.assign(page.begin(), page.begin() + sizeof(Contents));
  return activity;
}

std::string Activity::describe(const std::vector<std::string>& names) const {
  using Contents = ActivityPage::Contents;
  Contents contents;
  std::memcpy(&contents, bytes_.data(), sizeof contents);
  const auto name = [&](std::int32_t node) {
    return node >= 0 && static_cast<std::size_t>(node) < names.size()
               ? names[static_cast<std::size_t>(node)]
               : "node " + std::to_string(node);
  };
  const std::string since = " since " + seconds(contents.time);
  std::string text = name(contents.rank) + " has been ";
  switch (contents.kind) {
    case Contents::Kind::own_code:
      return text + "in its strategy's own code" + since;
    case Contents::Kind::computing:
      return text + "computing " + contents.kernel.key() + since;
    case Contents::Kind::sleeping:
      return text + "asleep until its kernel ends at " + seconds(contents.time);
    case Contents::Kind::sending:
      return text + "sending to " + name(contents.awaited[0].peer) + " on channel " +
             std::to_string(contents.awaited[0].tag) + since;
    case Contents::Kind::waiting:
      break;
  }
  text += "waiting" + since + " for ";
  for (std::int32_t i = 0; i < contents.sources; ++i) {
    const Contents::Awaited& awaited = contents.awaited[i];
    text += (i ? " or message " : "message ") + std::to_string(awaited.number) + " on channel " +
            std::to_string(awaited.tag) + " from " + name(awaited.peer);
  }
  return text;
}

}  // namespace orrery
