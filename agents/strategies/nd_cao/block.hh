// One block: a part of one node's parameters that learns from the global loss alone.
//
// It remembers which of its versions was in force at each unanswered evaluation, keeps the best one
// and a window of recent ones, and moves to the most promising of many random candidates. Nothing
// that other blocks do or hold enters here: that is the point of the method.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agents/strategies/nd_cao/estimator.hh"

namespace orrery::nd_cao {

/// Own versions with a loss below which a fit says nothing.
inline constexpr std::int64_t smallest_window = 5;

enum class Centre {
  best,     ///< candidates surround the block's part of the best composite
  current,  ///< they surround the version in force
};

struct BlockSettings {
  bool estimator = true;  ///< false: the move is one random candidate
  std::int64_t monomials = 150;
  std::int64_t candidates = 250;
  std::int64_t top = 1;      ///< the move is the mean of this many best candidates, at full length
  std::int64_t window = 30;  ///< own versions whose losses the fit sees
  double ridge = 10;
  Centre centre = Centre::best;
  bool antithetic = false;  ///< candidates come in pairs centre ± a ζ
};

/// What a move was, for the log. Predictions are NaN where nothing was estimated.
struct Move {
  std::uint64_t number = 0;  ///< own moves before this one
  std::int64_t newest = -1;  ///< newest evaluation that its fit could use
  double step = 0;
  double predicted = 0;         ///< the chosen candidate's estimated loss
  double predicted_change = 0;  ///< the same less the estimate at the centre
  double rank_correlation = 0;  ///< Spearman, predicted and seen changes of earlier moves
};

class Block {
 public:
  /// `scale` stretches a step per coordinate; its size is the start's.
  Block(std::string name, std::uint64_t seed, const BlockSettings& settings,
        std::vector<float> start, std::vector<float> scale);

  const std::string& name() const { return name_; }
  std::int64_t count() const { return static_cast<std::int64_t>(current_.values->size()); }

  /// The version in force, and the one of the best composite evaluated so far.
  const std::vector<float>& current() const { return *current_.values; }
  const std::vector<float>& best() const { return *best_.values; }
  /// Versions made so far; the one in force is the newest unless the block went back to its best.
  std::uint64_t moves() const { return moves_; }
  std::uint64_t version() const { return current_.number; }

  /// Evaluation k uses the version in force. Evaluations come in ascending order.
  /// Returns the move that is in force for the first time, if any.
  std::optional<Move> in_force(std::int64_t k);
  /// The loss of evaluation k; every one, in order of k. A loss that is not finite enters the
  /// window as its worst value. With `usable` false (an evaluation on an earlier objective set) it
  /// only settles which version k had.
  void result(std::int64_t k, double loss, bool best, bool usable = true);
  /// Whether the version in force has a loss, so that the block may move.
  bool may_move() const { return answered_; }

  /// A move in its three parts, so that each can be charged; after the third a new version is in
  /// force. The first two do nothing where there is no estimator yet.
  void fit();
  void score(double step);
  void fill(double step);
  bool estimates() const;

  /// The objective set has changed: losses seen so far mean nothing now.
  void forget();
  /// Puts the best version in force again, for its re-evaluation.
  void return_to_best();

  /// Own versions whose losses the next fit would see.
  std::size_t window_size() const { return window_.size(); }
  /// Copies kept for evaluations without an answer.
  std::size_t pending() const { return pending_.size(); }

 private:
  struct Version {
    std::uint64_t number = 0;
    std::shared_ptr<const std::vector<float>> values;  ///< never written to once made
  };
  struct Entry {
    Version version;
    double loss = 0;
  };
  struct Pending {
    std::int64_t k = 0;
    Version version;
  };

  const Version& centre() const { return settings_.centre == Centre::best ? best_ : current_; }
  void remember_prediction(double loss);

  std::string name_;
  std::uint64_t seed_;
  BlockSettings settings_;
  std::vector<float> scale_;

  Version current_;
  Version best_;
  double best_loss_;
  std::deque<Pending> pending_;
  std::deque<Entry> window_;
  bool answered_ = false;
  std::int64_t newest_result_ = -1;
  std::uint64_t moves_ = 0;
  std::uint64_t versions_ = 0;

  // The move under way.
  Basis basis_;
  std::optional<Estimator> estimator_;
  std::vector<float> chosen_;  ///< the winner's ζ at the touched coordinates
  Move move_;
  std::optional<Move> fresh_;  ///< made, and not yet in force at any evaluation

  // Predicted and seen changes of the last moves.
  bool awaiting_first_loss_ = false;
  double reference_loss_ = 0;
  std::deque<std::pair<double, double>> predictions_;
};

/// Spearman's rank correlation of (first, second); NaN below three pairs or without spread.
double rank_correlation(const std::deque<std::pair<double, double>>& pairs);

/// `count` numbers uniform in [−1, 1) of row `row` of a stream: a pure function of its arguments.
void uniform_row(std::uint64_t key, std::uint64_t sequence, std::uint64_t row,
                 std::span<float> out);

}  // namespace orrery::nd_cao
