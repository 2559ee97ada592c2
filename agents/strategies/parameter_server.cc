// Asynchronous parameter server: one node holds the parameters; each other computes gradients at
// its own pace and gets the newest parameters in return for each.
//
// Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014; Dean et
// al., "Large scale distributed deep networks", NIPS 2012 (asynchronous SGD).
//
// A slow or paused worker: the others go on, its gradients are stale when they come. A worker that
// dies: the server goes on with the rest; if it is restarted it asks for the parameters and joins
// again. The server dies: every worker ends with the reason.

#include <cmath>
#include <cstring>

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
    placement.schedule = "dynamic: each worker sends " + std::to_string(parameters * 4) +
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
      serve(node);
    else
      work(node, server);
  }

 private:
  static void serve(Node& node) {
    const ModelSpec& model = node.model();
    const std::int64_t parameters = model.parameter_count();
    const std::int64_t batch = node.options().integer("batch");
    const std::string decay = node.options().text("decay");
    const bool momentum = node.options().number("momentum") > 0;
    std::vector<float> values = initial_parameters(model, 0, model.layer_count(), node.seed());
    SgdOptimizer optimizer(node.options().number("learning_rate"),
                           node.options().number("momentum"), parameters);
    const std::int64_t last =
        last_step(node.stop(), std::max<std::int64_t>(1, node.workload().train_images / batch));

    std::vector<Source> sources;
    std::vector<bool> alive(static_cast<std::size_t>(node.size()), true);
    std::vector<bool> told(static_cast<std::size_t>(node.size()), false);
    for (int peer = 0; peer < node.size(); ++peer)
      if (peer != node.rank()) sources.push_back({peer, to_server});

    const KernelSpec update = update_kernel(parameters, momentum);
    const KernelSpec gather = copy_kernel(parameters);
    std::int64_t version = 0;
    bool over = false;
    double smoothed = std::nan("");
    const auto lose = [&](const PeerLost& loss) {
      alive[static_cast<std::size_t>(loss.peer())] = false;
      node.forgive(loss.peer());
      for (const Source& source : sources)
        if (alive[static_cast<std::size_t>(source.peer)]) return;
      throw Error("no worker is left after update " + std::to_string(version) + ": " + loss.what());
    };
    const auto all_told = [&] {
      for (const Source& source : sources) {
        const auto peer = static_cast<std::size_t>(source.peer);
        if (alive[peer] && !told[peer]) return false;
      }
      return true;
    };

    node.snapshot(0, 0, values);
    while (!(over && all_told())) {
      try {
        const int index = node.wait_any(sources);
        const int peer = sources[static_cast<std::size_t>(index)].peer;
        const Message message = *node.try_recv(sources[static_cast<std::size_t>(index)]);
        // Fairness: the next look begins with the next worker.
        std::rotate(sources.begin(), sources.begin() + index + 1, sources.end());
        const auto head = unpack<GradientHead>(message);
        if (!alive[static_cast<std::size_t>(peer)]) {
          node.reconnect(peer);
          alive[static_cast<std::size_t>(peer)] = true;
        }
        if (head.version >= 0 && !over) {
          const double progress =
              std::min(1.0, static_cast<double>(version) / static_cast<double>(last));
          const double factor = rate_factor(decay, progress);
          node.compute(
              update, [&] { optimizer.step(values, message.tensors.at(0).values(), 1.0, factor); });
          const std::int64_t staleness = version - head.version;
          ++version;
          if (!std::isfinite(head.loss))
            throw Error("the loss is no longer finite at update " + std::to_string(version) +
                        "; a smaller learning_rate would help");
          smoothed = std::isnan(smoothed) ? head.loss : 0.98 * smoothed + 0.02 * head.loss;
          node.log(version, "update", head.loss, head.samples,
                   {{"worker", peer},
                    {"staleness", static_cast<double>(staleness)},
                    {"learning_rate_factor", factor}});
          over = version >= last ||
                 (node.stop().time && node.now() - Instant{} >= *node.stop().time) ||
                 (node.stop().loss && smoothed <= *node.stop().loss);
          if (over || node.evaluation_due(version)) node.snapshot(version, 0, values);
        }
        Message reply{MessageKind::parameter, to_worker, pack(ParameterHead{version, over}), {}};
        if (!over) {
          // A copy: the parameters go on changing while it is being sent.
          Tensor copy;
          node.compute(gather, [&] {
            copy = Tensor({parameters});
            std::copy(values.begin(), values.end(), copy.data());
          });
          reply.tensors.push_back(copy);
        }
        told[static_cast<std::size_t>(peer)] = over;
        node.send(peer, std::move(reply));
      } catch (const PeerLost& loss) {
        if (over) {
          alive[static_cast<std::size_t>(loss.peer())] = false;
          node.forgive(loss.peer());
        } else {
          lose(loss);
        }
      }
    }
  }

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
  return {.name = "parameter_server",
          .description = "asynchronous parameter server: each worker at its own pace",
          .paper = "Li et al., OSDI 2014; Dean et al., NIPS 2012",
          .options = std::move(options),
          .stops = {"steps", "epochs", "time", "loss"},
          .make = [] { return std::make_unique<ParameterServer>(); },
          .node_options = {"server"}};
}

}  // namespace orrery
