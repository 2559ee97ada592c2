#include "netshape/fabric/fabric_backend.hh"

#include <set>
#include <stdexcept>

namespace orrery::netshape {

// Destroyed from the end: first the thread stops, then the devices go, then the frames they hold.
struct FabricBackend::Network {
  Network(const Plan& asked, const FabricOptions& options)
      : plan(asked), fabric(asked), taps(asked, options.offload), loop(fabric, taps, options) {}

  Plan plan;
  Switch fabric;
  TapNetwork taps;
  FabricLoop loop;
};

FabricBackend::FabricBackend(FabricOptions options) : options_(options) {}
FabricBackend::~FabricBackend() = default;

void FabricBackend::apply(const Plan& plan) {
  if (network_)
    throw std::logic_error("apply() on a backend that holds a network; remove() it first");
  network_ = std::make_unique<Network>(plan, options_);
}

ChangeTimes FabricBackend::change(std::span<const LinkChange> changes, Instant planned) {
  // All that can fail is done before the first link changes.
  Plan after = changed(current(), changes);
  std::set<std::string> names;
  for (const LinkChange& change : changes) names.insert(change.link);
  const std::vector<std::string> touched(names.begin(), names.end());
  Instant actual;
  network_->loop.in_between([&] {
    network_->fabric.change(after, touched);
    actual = FabricLoop::now();
  });
  network_->plan = std::move(after);
  return {planned, actual};
}

std::vector<LinkCounters> FabricBackend::counters() {
  current();
  std::vector<LinkCounters> all;
  network_->loop.in_between([&] { all = network_->fabric.counters(FabricLoop::now()); });
  return all;
}

std::vector<ReleaseLateness> FabricBackend::lateness() {
  current();
  std::vector<ReleaseLateness> all;
  network_->loop.in_between([&] { all = network_->fabric.lateness(); });
  return all;
}

std::vector<Applied> FabricBackend::applied() const {
  std::vector<Applied> all = network_ ? network_->taps.record() : std::vector<Applied>();
  for (const LinkPlan& link : current().links) {
    const auto add = [&](const char* field, std::int64_t asked, std::int64_t applied) {
      all.push_back({link.name, field, std::to_string(asked), std::to_string(applied)});
    };
    const LinkModel model = model_of(link);
    add("delay (ns)", link.spec.delay.ns, model.delay.ns);
    add("rate (bit/s)", link.spec.rate ? link.spec.rate->bits_per_second : 0,
        model.bits_per_second);
    add("queue (bytes)", link.queue_bytes.value, model.queue_bytes);
  }
  return all;
}

const Plan& FabricBackend::current() const {
  if (!network_) throw std::logic_error("the backend holds no network; apply() a plan first");
  return network_->plan;
}

void FabricBackend::remove() { network_.reset(); }

int FabricBackend::node_namespace(const std::string& node) const {
  current();
  return network_->taps.descriptor(node);
}

bool FabricBackend::favoured() const { return network_ && network_->loop.favoured(); }

}  // namespace orrery::netshape
