#include "tests/support/sim_cluster.hh"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <queue>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "agents/node.hh"
#include "base/philox.hh"
#include "tests/support/reference_kernels.hh"

namespace orrery::test {
namespace {

/// Thrown inside a node's thread to end it; no strategy catches it.
struct Killed {};
struct Deadlock {};

/// The clock, the links and the baton. Whoever holds the baton runs; only it touches the rest.
class Simulation {
 public:
  explicit Simulation(const SimSpec& spec)
      : spec_(spec), nodes_(static_cast<std::size_t>(spec.cluster.size())) {
    for (const auto& [rank, when] : spec.kills) push({when, 0, Event::kill, rank, -1, {}, 0});
    for (int rank = 0; rank < spec.cluster.size(); ++rank) node(rank).ready = true;
  }

  Instant now() const { return now_; }

  /// A node's thread calls this first, and leave() last.
  void enter(int rank) {
    std::unique_lock lock(mutex_);
    wait_for_baton(rank, lock);
  }
  void begin() {
    const std::lock_guard lock(mutex_);
    pass_baton();
  }
  void leave(int rank) {
    const std::lock_guard lock(mutex_);
    node(rank).finished = true;
    // What it had sent arrives; then its peers see the connection end.
    for (int peer = 0; peer < spec_.cluster.size(); ++peer) {
      if (peer == rank) continue;
      const Instant last = std::max(now_, free_at_[{rank, peer}]);
      push({last + link(rank, peer).delay, 0, Event::loss, peer, rank, {}, 0});
    }
    pass_baton();
  }

  void sleep_until(int rank, Instant t) {
    if (t <= now_) return;
    block(rank, {}, t);
  }

  void send(int rank, int peer, Message message) {
    if (node(rank).lost.count(peer) != 0) throw PeerLost(peer, "connection closed");
    const SimLink& line = link(rank, peer);
    Instant leaves = std::max(now_, free_at_[{rank, peer}]);
    if (line.bytes_per_second > 0) {
      leaves = leaves + Duration::seconds(static_cast<double>(message.payload_bytes()) /
                                          line.bytes_per_second);
    }
    free_at_[{rank, peer}] = leaves;
    push({leaves + line.delay, 0, Event::arrival, peer, rank, std::move(message), 0});
  }

  /// The node no longer minds that the peer is gone.
  void forgive(int rank, int peer) { node(rank).lost.erase(peer); }

  std::optional<Message> try_recv(int rank, Source source) {
    auto& queue = node(rank).inbox[source];
    if (queue.empty()) return std::nullopt;
    Message message = std::move(queue.front());
    queue.pop_front();
    return message;
  }

  int wait_any(int rank, std::span<const Source> sources, std::optional<Instant> deadline) {
    for (;;) {
      if (const int found = ready_source(rank, sources); found >= 0) return found;
      for (const Source& source : sources) {
        if (node(rank).lost.count(source.peer) != 0) {
          throw PeerLost(source.peer, "connection closed");
        }
      }
      if (deadline && *deadline <= now_) return -1;
      block(rank, sources, deadline);
    }
  }

  const std::string& deadlock() const { return deadlock_; }

 private:
  struct Event {
    Instant time;
    std::uint64_t number = 0;
    enum Kind { kill, arrival, loss, timer } kind = timer;
    int rank = 0;   ///< whom it concerns
    int peer = -1;  ///< from whom
    Message message;
    std::uint64_t wait = 0;  ///< which wait a timer ends
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return std::pair(a.time, a.number) > std::pair(b.time, b.number);
    }
  };
  struct NodeState {
    std::condition_variable baton;
    bool holds_baton = false;
    bool ready = false;
    bool finished = false;
    bool killed = false;
    std::uint64_t wait = 0;
    std::vector<Source> sources;
    std::optional<Instant> deadline;
    std::map<Source, std::deque<Message>> inbox;
    std::set<int> lost;
  };

  NodeState& node(int rank) { return nodes_[static_cast<std::size_t>(rank)]; }
  const SimLink& link(int from, int to) const {
    const auto found = spec_.links.find({from, to});
    return found == spec_.links.end() ? spec_.link : found->second;
  }
  void push(Event event) {
    event.number = events_made_++;
    events_.push(std::move(event));
  }

  int ready_source(int rank, std::span<const Source> sources) {
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (!node(rank).inbox[sources[i]].empty()) return static_cast<int>(i);
    }
    return -1;
  }

  void block(int rank, std::span<const Source> sources, std::optional<Instant> deadline) {
    std::unique_lock lock(mutex_);
    NodeState& own = node(rank);
    own.sources.assign(sources.begin(), sources.end());
    own.deadline = deadline;
    ++own.wait;
    own.ready = false;
    if (deadline) push({*deadline, 0, Event::timer, rank, -1, {}, own.wait});
    pass_baton();
    wait_for_baton(rank, lock);
  }

  void wait_for_baton(int rank, std::unique_lock<std::mutex>& lock) {
    NodeState& own = node(rank);
    own.baton.wait(lock, [&] { return own.holds_baton; });
    own.holds_baton = false;
    if (own.killed) throw Killed{};
    if (!deadlock_.empty()) throw Deadlock{};
  }

  void give(int rank) {
    node(rank).holds_baton = true;
    node(rank).baton.notify_one();
  }

  /// The lowest ready rank goes on; if there is none, the next event happens.
  void pass_baton() {
    for (;;) {
      bool anyone = false;
      for (int rank = 0; rank < spec_.cluster.size(); ++rank) {
        if (node(rank).finished) continue;
        anyone = true;
        if (node(rank).ready || !deadlock_.empty()) {
          node(rank).ready = true;
          give(rank);
          return;
        }
      }
      if (!anyone) return;
      if (events_.empty()) {
        describe_deadlock();
        continue;
      }
      Event event = events_.top();
      events_.pop();
      now_ = std::max(now_, event.time);
      happen(event);
    }
  }

  void happen(Event& event) {
    NodeState& own = node(event.rank);
    if (own.finished) return;
    switch (event.kind) {
      case Event::kill:
        own.killed = true;
        own.ready = true;
        break;
      case Event::arrival: {
        const Source source{event.peer, event.message.tag};
        own.inbox[source].push_back(std::move(event.message));
        own.ready = own.ready || std::count(own.sources.begin(), own.sources.end(), source) > 0;
        break;
      }
      case Event::loss:
        own.lost.insert(event.peer);
        own.ready = own.ready || std::any_of(own.sources.begin(), own.sources.end(),
                                             [&](const Source& s) { return s.peer == event.peer; });
        break;
      case Event::timer:
        own.ready = own.ready || event.wait == own.wait;
        break;
    }
  }

  void describe_deadlock() {
    std::ostringstream text;
    text << "deadlock at " << to_string(now_ - Instant{}) << ":";
    for (int rank = 0; rank < spec_.cluster.size(); ++rank) {
      if (node(rank).finished) continue;
      text << " node " << rank << " waits for";
      for (const Source& source : node(rank).sources) {
        text << " (node " << source.peer << ", channel " << source.tag << ")";
      }
      text << ";";
    }
    deadlock_ = text.str();
  }

  const SimSpec& spec_;
  std::mutex mutex_;
  std::deque<NodeState> nodes_;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::uint64_t events_made_ = 0;
  std::map<std::pair<int, int>, Instant> free_at_;
  Instant now_{};
  std::string deadlock_;
};

class SimClock : public Clock {
 public:
  SimClock(Simulation& simulation, int rank) : simulation_(simulation), rank_(rank) {}
  Instant now() override { return simulation_.now(); }
  void sleep_until(Instant t) override { simulation_.sleep_until(rank_, t); }

 private:
  Simulation& simulation_;
  int rank_;
};

class SimTransport : public Transport {
 public:
  SimTransport(Simulation& simulation, int rank, int size)
      : simulation_(simulation), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void send(int peer, Message message) override {
    count(peer, message);
    simulation_.send(rank_, peer, std::move(message));
  }
  std::optional<Message> try_recv(Source source) override {
    return simulation_.try_recv(rank_, source);
  }
  int wait_any(std::span<const Source> sources, std::optional<Instant> deadline) override {
    return simulation_.wait_any(rank_, sources, deadline);
  }
  void forgive(int peer) override { simulation_.forgive(rank_, peer); }

 private:
  Simulation& simulation_;
  int rank_;
  int size_;
};

}  // namespace

std::vector<wire::Step> SimNode::rows(const std::string& phase) const {
  std::vector<wire::Step> found;
  for (const wire::Record& record : records) {
    if (record.has_step() && record.step().phase() == phase) found.push_back(record.step());
  }
  return found;
}

std::vector<wire::Snapshot> SimNode::snapshots() const {
  std::vector<wire::Snapshot> found;
  for (const wire::Record& record : records) {
    if (record.has_snapshot()) found.push_back(record.snapshot());
  }
  return found;
}

std::int64_t SimNode::sent_bytes(const std::string& kind) const {
  std::int64_t bytes = 0;
  for (const wire::Record& record : records) {
    if (record.has_traffic() && record.traffic().kind() == kind) bytes += record.traffic().bytes();
  }
  return bytes;
}

std::int64_t SimNode::sent_messages(const std::string& kind) const {
  std::int64_t messages = 0;
  for (const wire::Record& record : records) {
    if (record.has_traffic() && record.traffic().kind() == kind) {
      messages += record.traffic().messages();
    }
  }
  return messages;
}

bool SimResult::ok() const {
  return std::all_of(nodes.begin(), nodes.end(),
                     [](const SimNode& node) { return node.error.empty() && !node.killed; });
}

std::string SimResult::errors() const {
  std::string text;
  for (const SimNode& node : nodes) text += node.error.empty() ? "" : node.error + "\n";
  return text;
}

std::vector<float> SimResult::parameters(std::int64_t step, std::int64_t count) const {
  std::vector<float> whole(static_cast<std::size_t>(count));
  std::int64_t found = 0;
  for (const SimNode& node : nodes) {
    for (const wire::Snapshot& snapshot : node.snapshots()) {
      if (snapshot.step() != step) continue;
      std::memcpy(whole.data() + snapshot.offset(), snapshot.values().data(),
                  snapshot.values().size());
      found += static_cast<std::int64_t>(snapshot.values().size() / sizeof(float));
    }
  }
  if (found != count) {
    throw std::runtime_error("the snapshots of step " + std::to_string(step) + " hold " +
                             std::to_string(found) + " of " + std::to_string(count) +
                             " parameters");
  }
  return whole;
}

SimResult run_cluster(const Strategy& strategy, const SimSpec& spec) {
  SimResult result;
  result.placement = strategy.plan(spec.cluster, spec.workload, spec.options, spec.stop, spec.seed);
  if (spec.tamper) spec.tamper(result.placement);
  const int size = spec.cluster.size();
  result.nodes.resize(static_cast<std::size_t>(size));

  Simulation simulation(spec);
  const auto live = [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    SimNode& outcome = result.nodes[r];
    VectorSink sink;
    try {
      simulation.enter(rank);
      SimClock clock(simulation, rank);
      Device device(clock,
                    r < spec.costs.size() ? spec.costs[r] : std::make_shared<const FixedCost>(),
                    spec.cluster.nodes[r].speed,
                    r < spec.schedules.size() ? spec.schedules[r] : SpeedSchedule());
      SimTransport transport(simulation, rank, size);
      const auto kernels = spec.kernels ? spec.kernels() : make_reference_kernels();
      NodeParts parts{clock,        device,        transport,        *kernels,     *spec.data, sink,
                      spec.cluster, spec.workload, result.placement, spec.options, spec.stop};
      parts.seed = spec.seed;
      parts.evaluate_every = spec.evaluate_every;
      Node node(parts);
      try {
        strategy.run(node);
      } catch (const PeerLost& loss) {
        outcome.error = loss.what();
        outcome.lost_peer = loss.peer();
      } catch (const std::exception& error) {
        outcome.error = error.what();
      }
      node.close();
    } catch (const Killed&) {
      outcome.killed = true;
    } catch (const Deadlock&) {
      outcome.error = simulation.deadlock();
    }
    outcome.end = simulation.now();
    outcome.records = std::move(sink.records);
    simulation.leave(rank);
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back(live, rank);
  simulation.begin();
  for (std::thread& thread : threads) thread.join();
  if (!simulation.deadlock().empty()) throw std::runtime_error(simulation.deadlock());
  return result;
}

Dataset toy_dataset(std::int64_t edge, std::int64_t classes, std::int64_t images) {
  Dataset data;
  data.name = "toy";
  data.mean = 0.5f;
  data.deviation = 0.3f;
  for (ImageSet* set : {&data.train, &data.test}) {
    set->height = set->width = edge;
    set->classes = classes;
    Philox random(set == &data.train ? 1 : 2, "toy images");
    for (std::int64_t i = 0; i < images; ++i) {
      const auto label = static_cast<std::uint8_t>(i % classes);
      set->labels.push_back(label);
      Philox pattern(label, "toy pattern");
      for (std::int64_t pixel = 0; pixel < edge * edge; ++pixel) {
        const double value = 0.6 * pattern.uniform() + 0.4 * random.uniform();
        set->pixels.push_back(static_cast<std::uint8_t>(255 * value));
      }
    }
  }
  return data;
}

}  // namespace orrery::test
