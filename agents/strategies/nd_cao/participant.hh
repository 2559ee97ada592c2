// One node's part in a run of nd_cao: the protocol between nodes.
//
// Everything happens in one thread, in the order in which the node looks at its channels. Results
// are handled in order of k, every one, so all nodes agree at each k on what the best composite is.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "agents/node.hh"
#include "agents/strategies/nd_cao/block.hh"
#include "agents/strategies/nd_cao/coordinates.hh"
#include "agents/strategies/nd_cao/frames.hh"
#include "agents/strategies/nd_cao/settings.hh"

namespace orrery::nd_cao {

class Participant {
 public:
  Participant(Node& node, const Settings& settings);
  /// Until the run is over. Throws PeerLost that names the node, the evaluation and what it waited
  /// for.
  void run();

 private:
  bool first() const { return node_.rank() == 0; }
  bool final() const { return node_.rank() + 1 == node_.size(); }
  bool alone() const { return node_.size() == 1; }
  int last_rank() const { return node_.size() - 1; }
  bool over() const { return handled_ >= total_; }

  void set_up();
  void make_blocks();
  void load_objective();
  Components charged_components();

  void run_sync();
  void run_async();

  // Node 0: when to start an evaluation, and starting it.
  bool may_start() const;
  void start_evaluation();

  // Every node: what an evaluation, a result and a move are.
  void take_forward(const Message& message);
  void evaluate(const ForwardFrame& frame, bool input_changed);
  void publish(const ForwardFrame& frame, double loss);
  void take_result(const ResultFrame& frame);
  void move(std::size_t block);
  bool move_one();
  void move_all();
  void take_note(const NoteFrame& note);
  bool take_one_message();

  Message await(Source source, const std::string& what);
  /// Channels on which something can still come, the most urgent first.
  std::vector<Source> open_channels() const;
  bool all_forwards_in() const { return forwards_in_ >= std::min(total_, known_total_); }
  void log_move(std::size_t block, const Move& move, std::int64_t k);
  void snapshot();
  void finish();

  Node& node_;
  Settings settings_;
  std::int64_t offset_ = 0;       ///< of the node's parameters in the model's
  std::int64_t samples_ = 0;      ///< of the objective set
  std::uint32_t block_base_ = 0;  ///< number of the first own block in the whole placement
  std::vector<int> block_owner_;  ///< node of each block of the placement

  std::unique_ptr<Stage> stage_;
  std::vector<Block> blocks_;
  std::vector<std::unique_ptr<Coordinates>> coordinates_;
  std::vector<KernelSpec> write_kernels_;
  std::size_t next_to_move_ = 0;  ///< blocks take turns

  // The forward pass and what is remembered of it.
  Tensor input_;
  std::int64_t input_k_ = -1;
  std::uint32_t input_set_ = 0;
  Tensor output_;
  double output_loss_ = 0;
  std::int64_t output_k_ = -1;  ///< evaluation that computed it; −1: none
  std::uint64_t revision_ = 0;  ///< counts changes of the node's parameters
  std::uint64_t output_revision_ = 0;
  std::vector<std::uint8_t> labels_;  ///< last node
  std::uint32_t labels_set_ = 0;
  std::int64_t forwards_in_ = 0;
  std::int64_t computed_ = 0;  ///< evaluations whose forward pass ran here

  // Results.
  static constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::max();
  std::int64_t handled_ = 0;
  std::int64_t total_ = unknown;        ///< evaluations of the run, once it is known to end
  std::int64_t known_total_ = unknown;  ///< the budget, known to all from the start
  bool last_seen_ = false;
  bool end_came_ = false;  ///< told by an end frame, not by the budget
  std::vector<double> stalenesses_;

  // Node 0.
  std::int64_t started_ = 0;
  bool moved_since_start_ = false;
  bool reevaluate_ = false;
  std::uint32_t reevaluate_after_ = 0;
  std::uint32_t set_ = 0;
  std::vector<std::int64_t> results_since_move_;  ///< by block of the placement

  // Last node.
  double best_loss_ = std::numeric_limits<double>::infinity();
  std::uint32_t current_set_ = 0;
  std::int64_t evaluations_of_set_ = 0;

  std::string awaited_;  ///< for errors: what it waits for or sends
};

}  // namespace orrery::nd_cao
