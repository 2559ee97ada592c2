// Parameter server: one node holds the parameters; each other computes gradients and gets newer
// parameters in return for each. When it gets them is the mode:
//   async: at once. Each gradient is an update, however stale.
//   ssp:   when the slowest worker is at most `staleness` gradients behind it. Each is an update.
//   sync:  when every worker's gradient of the round is in. Their mean, weighted by samples, is one
//          update: the same as data-parallel SGD on the joint batch.
//
// Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014; Dean et
// al., "Large scale distributed deep networks", NIPS 2012 (async); Ho et al., "More effective
// distributed ML via a stale synchronous parallel parameter server", NIPS 2013 (ssp).
//
// A slow or paused worker: in async the others go on and its gradients are stale when they come; in
// ssp they go on until the bound; in sync they wait. A worker that dies: the server goes on with
// the rest and a round needs one gradient less; if it is restarted it asks for the parameters and
// joins again, in ssp with the slowest one's count. The server dies: every worker ends with the
// reason.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "agents/node.hh"
#include "agents/strategies/builtin.hh"
#include "agents/strategies/sgd.hh"

namespace orrery {
namespace {

constexpr std::uint32_t to_server = 1;
constexpr std::uint32_t to_worker = 2;

// The head of each message, little endian as the host is.
struct GradientHead {
  std::int64_t version = 0;  ///< of the parameters that it was computed from; −1: I have none
  std::int64_t samples = 0;
  double loss = 0;
};
struct ParameterHead {
  std::int64_t version = 0;
  std::int64_t last = 0;  ///< 1: the run is over
};

template <typename Head>
std::string pack(const Head& head) {
  return std::string(reinterpret_cast<const char*>(&head), sizeof head);
}
template <typename Head>
Head unpack(const Message& message) {
  Head head;
  if (message.header.size() != sizeof head) throw Error("a message of another version's length");
  std::memcpy(&head, message.header.data(), sizeof head);
  return head;
}

int server_rank(const ClusterView& cluster, const Options& options) {
  const std::string& name = options.text("server");
  if (name.empty()) return 0;
  const int rank = cluster.find(name);
  if (rank < 0) throw PlacementError("server '" + name + "' is not a node; write a node's name");
  return rank;
}

/// The server's side of a run.
class Server {
 public:
  explicit Server(Node& node)
      : node_(node),
        parameters_(node.model().parameter_count()),
        mode_(node.options().text("mode")),
        staleness_(node.options().integer("staleness")),
        values_(initial_parameters(node.model(), 0, node.model().layer_count(), node.seed())),
        optimizer_(node.options().number("learning_rate"), node.options().number("momentum"),
                   parameters_),
        update_(update_kernel(parameters_, node.options().number("momentum") > 0)),
        gather_(copy_kernel(parameters_)),
        add_(reduce_kernel(parameters_)),
        workers_(static_cast<std::size_t>(node.size())) {
    const std::int64_t together = node.options().integer("batch") * updates_together();
    last_ =
        last_step(node.stop(), std::max<std::int64_t>(1, node.workload().train_images / together));
    for (int peer = 0; peer < node.size(); ++peer)
      if (peer != node.rank()) sources_.push_back({peer, to_server});
    worker(node.rank()) = Worker{.alive = false};
  }

  void run() {
    node_.snapshot(0, 0, values_);
    while (!(over_ && all_told())) {
      try {
        const int index = node_.wait_any(sources_);
        const Source source = sources_[static_cast<std::size_t>(index)];
        const Message message = *node_.try_recv(source);
        // Fairness: the next look begins with the next worker.
        std::rotate(sources_.begin(), sources_.begin() + index + 1, sources_.end());
        take(source.peer, message);
        release();
      } catch (const PeerLost& loss) {
        lose(loss);
      }
    }
  }

 private:
  struct Worker {
    bool alive = true;
    bool told = false;      ///< that the run is over
    bool waits = false;     ///< for parameters
    bool computing = true;  ///< owes a gradient; from the start, so that a round waits for all
    std::int64_t gradients = 0;
  };

  /// Gradients that make one update.
  int updates_together() const { return mode_ == "sync" ? node_.size() - 1 : 1; }
  Worker& worker(int peer) { return workers_[static_cast<std::size_t>(peer)]; }

  void take(int peer, const Message& message) {
    const auto head = unpack<GradientHead>(message);
    Worker& from = worker(peer);
    if (!from.alive || head.version < 0) {
      if (!from.alive) node_.reconnect(peer);
      // As far as the slowest: it neither holds the others nor runs ahead of them.
      from = Worker{};
      from.gradients = slowest_but(peer);
    }
    from.waits = true;
    from.computing = false;
    if (head.version < 0 || over_) return;
    ++from.gradients;
    if (!std::isfinite(head.loss))
      throw Error("the loss is no longer finite at update " + std::to_string(version_ + 1) +
                  "; a smaller learning_rate would help");
    const auto gradient = message.tensors.at(0).values();
    if (mode_ != "sync") {
      update(gradient, 1.0, head.loss, head.samples,
             {{"worker", peer}, {"staleness", static_cast<double>(version_ - head.version)}});
      return;
    }
    const auto weight = static_cast<float>(head.samples);
    node_.compute(add_, [&] {
      if (round_samples_ == 0) sum_.assign(gradient.size(), 0.0f);
      for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += weight * gradient[i];
    });
    round_samples_ += head.samples;
    round_loss_ += head.loss * static_cast<double>(head.samples);
    ++round_gradients_;
  }

  /// One step of the optimiser, and what follows from it.
  void update(std::span<const float> gradient, double scale, double loss, std::int64_t samples,
              Node::Figures extra) {
    const double progress =
        std::min(1.0, static_cast<double>(version_) / static_cast<double>(last_));
    const double factor = rate_factor(node_.options().text("decay"), progress);
    node_.compute(update_, [&] { optimizer_.step(values_, gradient, scale, factor); });
    ++version_;
    smoothed_ = std::isnan(smoothed_) ? loss : 0.98 * smoothed_ + 0.02 * loss;
    node_.log(version_, "update", loss, samples, [&] {
      extra["learning_rate_factor"] = factor;
      return std::move(extra);
    });
    over_ = version_ >= last_ ||
            (node_.stop().time && node_.now() - Instant{} >= *node_.stop().time) ||
            (node_.stop().loss && smoothed_ <= *node_.stop().loss);
    if (over_ || node_.evaluation_due(version_)) node_.snapshot(version_, 0, values_);
  }

  /// Ends the round if it is complete, and answers whoever may go on.
  void release() {
    if (round_gradients_ > 0 && !anyone_computing()) {
      const auto samples = static_cast<double>(round_samples_);
      const int gradients = std::exchange(round_gradients_, 0);
      const std::int64_t count = std::exchange(round_samples_, 0);
      update(sum_, 1.0 / samples, std::exchange(round_loss_, 0.0) / samples, count,
             {{"workers", gradients}});
    }
    for (int peer = 0; peer < node_.size(); ++peer) {
      if (worker(peer).alive && worker(peer).waits && (over_ || may_go_on(peer))) answer(peer);
    }
  }

  bool may_go_on(int peer) {
    if (mode_ == "ssp") return worker(peer).gradients - slowest_but(peer) <= staleness_;
    // In sync, who has given to the round that is open waits for its end. So does one that comes
    // back meanwhile: what it would give could come after all the others'.
    return mode_ == "async" || round_gradients_ == 0;
  }

  void answer(int peer) {
    Message reply{MessageKind::parameter, to_worker, pack(ParameterHead{version_, over_}), {}};
    if (!over_) {
      // A copy: the parameters go on changing while it is being sent.
      Tensor copy;
      node_.compute(gather_, [&] {
        copy = Tensor({parameters_});
        std::copy(values_.begin(), values_.end(), copy.data());
      });
      reply.tensors.push_back(copy);
    }
    worker(peer).waits = false;
    worker(peer).computing = !over_;
    worker(peer).told = over_;
    node_.send(peer, std::move(reply));
  }

  void lose(const PeerLost& loss) {
    worker(loss.peer()) = Worker{.alive = false};
    node_.forgive(loss.peer());
    if (over_) return;
    const auto alive = [&](const Source& source) { return worker(source.peer).alive; };
    if (std::none_of(sources_.begin(), sources_.end(), alive))
      throw Error("no worker is left after update " + std::to_string(version_) + ": " +
                  loss.what());
    try {
      release();  // it may have been the one that all waited for
    } catch (const PeerLost& another) {
      lose(another);
    }
  }

  bool all_told() const {
    return std::all_of(sources_.begin(), sources_.end(), [&](const Source& source) {
      const Worker& peer = workers_[static_cast<std::size_t>(source.peer)];
      return peer.told || !peer.alive;
    });
  }
  bool anyone_computing() const {
    return std::any_of(workers_.begin(), workers_.end(),
                       [](const Worker& peer) { return peer.alive && peer.computing; });
  }
  /// The least count of gradients among the other living workers; its own if it is alone.
  std::int64_t slowest_but(int peer) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const Source& source : sources_)
      if (source.peer != peer && worker(source.peer).alive)
        least = std::min(least, worker(source.peer).gradients);
    return least == std::numeric_limits<std::int64_t>::max() ? worker(peer).gradients : least;
  }

  Node& node_;
  std::int64_t parameters_;
  std::string mode_;
  std::int64_t staleness_;
  std::vector<float> values_;
  SgdOptimizer optimizer_;
  KernelSpec update_;
  KernelSpec gather_;
  KernelSpec add_;
  std::int64_t last_ = 0;  ///< updates of the run
  std::vector<Source> sources_;
  std::vector<Worker> workers_;  ///< by rank; the server's own is not alive
  std::int64_t version_ = 0;     ///< updates made
  bool over_ = false;
  double smoothed_ = std::nan("");

  // The open round of sync.
  std::vector<float> sum_;
  std::int64_t round_samples_ = 0;
  double round_loss_ = 0;
  int round_gradients_ = 0;
};

class ParameterServer : public Strategy {
 public:
  Placement plan(const ClusterView& cluster, const WorkloadView& workload, const Options& options,
                 const StopRule&, std::uint64_t) const override {
    const int n = cluster.size();
    if (n < 2)
      throw PlacementError(
          "a parameter server needs a server and at least one worker; give it two "
          "nodes or more");
    const std::int64_t batch = options.integer("batch");
    if (batch * (n - 1) > workload.train_images)
      throw PlacementError("a batch of " + std::to_string(batch) + " for " + std::to_string(n - 1) +
                           " workers is more than the training set's " +
                           std::to_string(workload.train_images) + " images; make batch smaller");
    const int server = server_rank(cluster, options);
    const ModelSpec& model = workload.model;
    const int layers = model.layer_count();
    const std::int64_t parameters = model.parameter_count();
    Placement placement;
    placement.schedule = options.text("mode") + ": each worker sends " +
                         std::to_string(parameters * 4) +
                         " bytes of gradients and gets as many of parameters back";
    int worker = 0;
    for (int rank = 0; rank < n; ++rank) {
      NodePlacement node;
      node.last_layer = layers;
      node.blocks = {{"all", {{0, parameters}}}};
      if (rank == server) {
        node.role = "server";
        node.kernels = {update_kernel(parameters, options.number("momentum") > 0),
                        copy_kernel(parameters)};
        if (options.text("mode") == "sync") node.kernels.push_back(reduce_kernel(parameters));
        for (int peer = 0; peer < n; ++peer)
          if (peer != server) node.sends_to.push_back(peer);
      } else {
        node.role = "worker " + std::to_string(++worker) + " of " + std::to_string(n - 1);
        node.kernels = {load_batch_kernel(batch, model.elements_after(-1)), copy_kernel(parameters),
                        forward_train_kernel(model, 0, layers, batch),
                        loss_gradient_kernel(batch, model.classes),
                        backward_kernel(model, 0, layers, batch)};
        node.sends_to = {server};
      }
      node.kernels.push_back(message_kernel(parameters * 4));
      placement.nodes.push_back(std::move(node));
    }
    return placement;
  }

  void run(Node& node) const override {
    const int server = server_rank(node.cluster(), node.options());
    if (node.rank() == server)
      Server(node).run();
    else
      work(node, server);
  }

 private:
  static void work(Node& node, int server) {
    const ModelSpec& model = node.model();
    const int layers = model.layer_count();
    const std::int64_t batch = node.options().integer("batch");
    const std::int64_t parameters = model.parameter_count();
    const int workers = node.size() - 1;
    const int worker = node.rank() < server ? node.rank() : node.rank() - 1;
    const auto stage = node.kernels().make_stage(model, 0, layers,
                                                 initial_parameters(model, 0, layers, node.seed()));
    SampleOrder order(node.seed(), node.workload().train_images, batch, workers);
    std::vector<std::uint8_t> labels(static_cast<std::size_t>(batch));
    // Worked out once: it would be uncharged work in each step.
    const KernelSpec take = copy_kernel(parameters);
    const KernelSpec load = load_batch_kernel(batch, model.elements_after(-1));
    const KernelSpec forward = forward_train_kernel(model, 0, layers, batch);
    const KernelSpec judge = loss_gradient_kernel(batch, model.classes);
    const KernelSpec backward = backward_kernel(model, 0, layers, batch);

    node.send(server, {MessageKind::control, to_server, pack(GradientHead{-1, 0, 0}), {}});
    for (std::int64_t step = 0;; ++step) {
      const Message parameters_message = node.recv({server, to_worker});
      const auto head = unpack<ParameterHead>(parameters_message);
      if (head.last) return;
      Tensor input;
      node.compute(take, [&] {
        const auto from = parameters_message.tensors.at(0).values();
        std::copy(from.begin(), from.end(), stage->parameters().begin());
      });
      node.compute(load, [&] {
        const auto indices = order.batch(step, worker);
        input = make_batch(node.data(), node.data().train, indices, model.input_shape);
        for (std::size_t i = 0; i < indices.size(); ++i)
          labels[i] = node.data().train.labels[static_cast<std::size_t>(indices[i])];
      });
      Tensor logits, slope;
      double loss = 0;
      node.compute(forward, [&] { logits = stage->forward_train(input); });
      node.compute(judge, [&] { loss = node.kernels().loss_gradient(logits, labels, slope); });
      Tensor gradients;
      node.compute(backward, [&] {
        gradients = Tensor({parameters});
        stage->backward(slope, false);
        const auto from = stage->gradients();
        std::copy(from.begin(), from.end(), gradients.data());
      });
      node.count_samples(batch, batch);
      node.send(server, {MessageKind::gradient,
                         to_server,
                         pack(GradientHead{head.version, batch, loss}),
                         {gradients}});
    }
  }
};

}  // namespace

StrategyInfo parameter_server_info() {
  std::vector<OptionSpec> options = sgd_options();
  options.push_back({.name = "server",
                     .kind = OptionKind::text,
                     .fallback = std::string(),
                     .help = "the node that holds the parameters; empty: the first"});
  options.push_back({.name = "mode",
                     .kind = OptionKind::choice,
                     .fallback = std::string("async"),
                     .help = "async: a worker goes on at once; ssp: when the slowest is at most "
                             "staleness gradients behind it; sync: when all of the round are in",
                     .choices = {"async", "ssp", "sync"}});
  options.push_back({.name = "staleness",
                     .kind = OptionKind::integer,
                     .fallback = std::int64_t{3},
                     .help = "ssp: gradients by which a worker may be ahead of the slowest",
                     .minimum = 0});
  return {.name = "parameter_server",
          .description = "parameter server: asynchronous, stale-synchronous or synchronous workers",
          .paper = "Li et al., OSDI 2014; Dean et al., NIPS 2012; Ho et al., NIPS 2013",
          .options = std::move(options),
          .stops = {"steps", "epochs", "time", "loss"},
          .make = [] { return std::make_unique<ParameterServer>(); },
          .node_options = {"server"}};
}

}  // namespace orrery
