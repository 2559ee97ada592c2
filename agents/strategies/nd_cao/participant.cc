#include "agents/strategies/nd_cao/participant.hh"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "agents/strategies/nd_cao/charged.hh"
#include "agents/strategies/nd_cao/partition.hh"
#include "agents/strategies/nd_cao/plan.hh"

namespace orrery::nd_cao {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

std::vector<std::int64_t> objective_indices(std::uint32_t set, std::int64_t samples,
                                            std::int64_t images) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(samples));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    indices[i] = (static_cast<std::int64_t>(set) * samples + static_cast<std::int64_t>(i)) % images;
  }
  return indices;
}

}  // namespace

Participant::Participant(Node& node, const Settings& settings)
    : node_(node), settings_(settings), samples_(node.workload().objective_images) {
  known_total_ = settings.budget > 0 ? settings.budget : unknown;
  const auto& nodes = node.placement().nodes;
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    if (static_cast<int>(rank) == node.rank()) {
      block_base_ = static_cast<std::uint32_t>(block_owner_.size());
    }
    block_owner_.insert(block_owner_.end(), nodes[rank].blocks.size(), static_cast<int>(rank));
  }
  results_since_move_.assign(block_owner_.size(), 0);
}

void Participant::run() {
  try {
    set_up();
    if (settings_.mode == Mode::sync) {
      run_sync();
    } else {
      run_async();
    }
    finish();
  } catch (const PeerLost& loss) {
    throw PeerLost(loss.peer(), node_.name(node_.rank()) + " at evaluation " +
                                    std::to_string(handled_ + 1) + ": lost " +
                                    node_.name(loss.peer()) + " while it waited for " + awaited_ +
                                    " (" + loss.what() + ")");
  }
}

void Participant::set_up() {
  const NodePlacement& own = node_.own();
  const ModelSpec& model = node_.model();
  offset_ = model.parameter_count(0, own.first_layer);
  check_blocks(own.blocks, offset_,
               offset_ + model.parameter_count(own.first_layer, own.last_layer));
  const std::vector<float> start =
      initial_parameters(model, own.first_layer, own.last_layer, node_.seed());
  stage_ = node_.kernels().make_stage(model, own.first_layer, own.last_layer, start);
  if (first()) load_objective();
  if (final()) labels_set_ = ~0u;  // none read yet
  make_blocks();
  snapshot();
}

void Participant::load_objective() {
  const std::int64_t images = node_.data().train.size();
  const auto indices = objective_indices(set_, samples_, images);
  node_.compute(load_batch_kernel(samples_, node_.model().elements_after(-1)), [&] {
    input_ = make_batch(node_.data(), node_.data().train, indices, node_.model().input_shape);
  });
}

Components Participant::charged_components() {
  const std::int64_t features = node_.model().elements_after(-1);
  Components found;
  bool done = false;
  for (const auto& [kernel, times] : component_kernels(samples_, features, settings_.input_rank)) {
    for (std::int64_t i = 0; i < times; ++i) {
      node_.compute(kernel, [&] {
        // All of the work is in the first piece of what it costs.
        if (std::exchange(done, true)) return;
        found = principal_components(input_.values(), features, settings_.input_rank);
      });
    }
  }
  return found;
}

void Participant::make_blocks() {
  const NodePlacement& own = node_.own();
  const ModelSpec& model = node_.model();
  const std::span<const float> start = stage_->parameters();
  const StepUnits units{settings_.step_by_fan_in, settings_.last_step};
  Components components;
  if (first() && settings_.input_rank > 0) components = charged_components();
  for (const BlockSpec& spec : own.blocks) {
    coordinates_.push_back(moves_in_inputs(spec, model, settings_.input_rank)
                               ? input_coordinates(spec, model, offset_, start, components,
                                                   settings_.input_whitening, units)
                               : plain_coordinates(spec, model, offset_, start, units));
    write_kernels_.push_back(write_kernel(spec, model, settings_.input_rank));
    blocks_.emplace_back(spec.name, node_.seed(), settings_.block, coordinates_.back()->start(),
                         coordinates_.back()->scale());
  }
}

// ---- Synchronous: one evaluation at a time, every block moves after each.

void Participant::run_sync() {
  while (!over()) {
    if (first()) {
      start_evaluation();
    } else {
      const int from = node_.rank() - 1;
      take_forward(await({from, forward_tag}, "activation " + std::to_string(handled_ + 1)));
    }
    if (!final()) {
      const Message message =
          await({last_rank(), result_tag}, "result " + std::to_string(handled_ + 1));
      take_result(unpack_result(message.header));
    }
    if (!over()) move_all();
  }
}

// ---- Asynchronous: whatever has come first; a forward before a move; otherwise wait.

void Participant::run_async() {
  while (!over()) {
    if (first() && may_start()) {
      // An evaluation of blocks that stood still is half wasted; these can move at once.
      if (settings_.block.move_after == MoveAfter::trial)
        while (move_one()) {
        }
      start_evaluation();
      continue;
    }
    if (take_one_message()) continue;
    if (!last_seen_ && move_one()) continue;
    const std::vector<Source> channels = open_channels();
    if (channels.empty()) {
      throw Error(node_.name(node_.rank()) + " at evaluation " + std::to_string(handled_ + 1) +
                  ": nothing can come any more");
    }
    awaited_ = first() ? "a result or a note that a block has moved"
                       : "activation " + std::to_string(forwards_in_ + 1) + " or result " +
                             std::to_string(handled_ + 1);
    node_.wait_any(channels);
  }
}

std::vector<Source> Participant::open_channels() const {
  std::vector<Source> channels;
  if (!first() && !all_forwards_in()) channels.push_back({node_.rank() - 1, forward_tag});
  if (!final()) channels.push_back({last_rank(), result_tag});
  if (first() && !last_seen_ && started_ < known_total_) {
    for (int peer = 1; peer < node_.size(); ++peer) channels.push_back({peer, note_tag});
  }
  return channels;
}

bool Participant::take_one_message() {
  for (const Source& source : open_channels()) {
    awaited_ = "messages of " + node_.name(source.peer);
    const std::optional<Message> message = node_.try_recv(source);
    if (!message) continue;
    if (source.tag == forward_tag) take_forward(*message);
    if (source.tag == result_tag) take_result(unpack_result(message->header));
    if (source.tag == note_tag) take_note(unpack_note(message->header));
    return true;
  }
  return false;
}

bool Participant::may_start() const {
  if (last_seen_ || started_ >= known_total_) return false;
  if (started_ - handled_ >= settings_.in_flight) return false;
  if (started_ == 0 || reevaluate_) return true;
  return moved_since_start_ &&
         std::all_of(results_since_move_.begin(), results_since_move_.end(),
                     [&](std::int64_t count) { return count < settings_.staleness; });
}

void Participant::take_note(const NoteFrame& note) {
  if (note.block >= results_since_move_.size()) throw Error("a note of a block that is not there");
  // A note may overtake the result that its move used; that result then counts for nothing.
  results_since_move_[note.block] =
      std::min<std::int64_t>(0, handled_ - static_cast<std::int64_t>(note.newest) - 1);
  moved_since_start_ = true;
}

// ---- An evaluation.

void Participant::start_evaluation() {
  ForwardFrame frame;
  frame.k = static_cast<std::uint32_t>(started_++);
  moved_since_start_ = false;
  if (std::exchange(reevaluate_, false)) {
    frame.flags = ForwardFrame::reevaluate;
    frame.reference = reevaluate_after_;
  }
  frame.set = set_;
  const bool input_changed = input_set_ != set_ || frame.k == 0;
  if (input_set_ != set_) load_objective();
  input_set_ = set_;
  evaluate(frame, input_changed);
}

void Participant::take_forward(const Message& message) {
  const ForwardFrame frame = unpack_forward(message.header);
  if (frame.flags & ForwardFrame::end) {
    total_ = frame.k;
    end_came_ = true;
    if (!final()) node_.send(node_.rank() + 1, message);
    return;
  }
  ++forwards_in_;
  const bool same = frame.flags & ForwardFrame::same;
  if (same && input_k_ != frame.reference) {
    throw Error("activation " + std::to_string(frame.k) + " is said to be that of evaluation " +
                std::to_string(frame.reference) + ", which is not at hand");
  }
  if (!same) {
    input_ = message.tensors.at(0);
    input_k_ = frame.k;
  }
  evaluate(frame, !same);
}

void Participant::evaluate(const ForwardFrame& frame, bool input_changed) {
  if (frame.flags & ForwardFrame::reevaluate) {
    // The best as of one result, at every node the same: that result may still be on its way here.
    while (handled_ <= frame.reference) {
      const Message message =
          await({last_rank(), result_tag}, "result " + std::to_string(handled_ + 1));
      take_result(unpack_result(message.header));
    }
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      blocks_[b].return_to_best();
      node_.compute(write_kernels_[b],
                    [&] { coordinates_[b]->write(blocks_[b].current(), stage_->parameters()); });
    }
    ++revision_;
  }
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    if (const auto move = blocks_[b].in_force(frame.k)) log_move(b, *move, frame.k);
  }

  const NodePlacement& own = node_.own();
  const bool cached =
      settings_.caching && !input_changed && output_k_ >= 0 && output_revision_ == revision_;
  if (!cached) {
    node_.compute(forward_kernel(node_.model(), own.first_layer, own.last_layer, samples_),
                  [&] { output_ = stage_->forward(input_); });
    ++computed_;
    output_k_ = frame.k;
    output_revision_ = revision_;
  }
  if (!final()) {
    ForwardFrame next = frame;
    Message message{MessageKind::activation, forward_tag, {}, {}};
    if (cached) {
      next.flags |= ForwardFrame::same;
      next.reference = static_cast<std::uint32_t>(output_k_);
      message.kind = MessageKind::control;
    } else {
      next.flags &= ~ForwardFrame::same;
      message.tensors.push_back(output_);
    }
    message.header = pack(next);
    awaited_ = "its activation " + std::to_string(frame.k + 1) + " to be taken";
    node_.send(node_.rank() + 1, std::move(message));
    return;
  }

  if (labels_set_ != frame.set) {
    const auto& all = node_.data().train.labels;
    labels_.clear();
    for (const std::int64_t i : objective_indices(frame.set, samples_, node_.data().train.size())) {
      labels_.push_back(all[static_cast<std::size_t>(i)]);
    }
    labels_set_ = frame.set;
  }
  if (!cached) {
    node_.compute(loss_kernel(samples_, node_.model().classes),
                  [&] { output_loss_ = node_.kernels().loss(output_, labels_); });
  }
  publish(frame, output_loss_);
}

// ---- A result.

void Participant::publish(const ForwardFrame& frame, double loss) {
  ResultFrame result{frame.k, 0, loss};
  const std::int64_t published = static_cast<std::int64_t>(frame.k) + 1;
  const StopRule& stop = node_.stop();
  if (published >= known_total_ || (stop.loss && std::isfinite(loss) && loss <= *stop.loss) ||
      (stop.time && node_.now() >= Instant{} + *stop.time) || last_seen_) {
    result.flags |= ResultFrame::last;
  }
  if (frame.set != current_set_) {
    result.flags |= ResultFrame::old_set;
  } else {
    if (std::isfinite(loss) && loss < best_loss_) {
      best_loss_ = loss;
      result.flags |= ResultFrame::best;
    }
    ++evaluations_of_set_;
    if (settings_.set_every > 0 && evaluations_of_set_ >= settings_.set_every &&
        !(result.flags & ResultFrame::last)) {
      result.flags |= ResultFrame::set_changed;
    }
  }
  for (int peer = 0; peer < last_rank(); ++peer) {
    awaited_ = "result " + std::to_string(published) + " to be taken";
    node_.send(peer, {MessageKind::scalar, result_tag, pack(result), {}});
  }
  node_.count_samples(samples_, 0);
  node_.log(published, "evaluation", loss, samples_, [&] {
    return Node::Figures{{"best", best_loss_},
                         {"is_best", result.flags & ResultFrame::best ? 1.0 : 0.0},
                         {"set", static_cast<double>(frame.set)},
                         {"step_size", settings_.step_after(published)}};
  });
  if (result.flags & ResultFrame::set_changed) {
    ++current_set_;
    evaluations_of_set_ = 0;
    best_loss_ = std::numeric_limits<double>::infinity();
  }
  take_result(result);
}

void Participant::take_result(const ResultFrame& frame) {
  if (frame.k != static_cast<std::uint32_t>(handled_)) {
    throw Error("result " + std::to_string(frame.k + 1) + " came when " +
                std::to_string(handled_ + 1) + " was due");
  }
  for (Block& block : blocks_) {
    block.result(frame.k, frame.loss, frame.flags & ResultFrame::best,
                 !(frame.flags & ResultFrame::old_set));
  }
  ++handled_;
  for (std::int64_t& count : results_since_move_) ++count;

  if (frame.flags & ResultFrame::set_changed) {
    for (Block& block : blocks_) block.forget();
    if (first()) {
      ++set_;
      reevaluate_ = true;
      reevaluate_after_ = frame.k;
    }
  }
  if ((frame.flags & ResultFrame::last) && !std::exchange(last_seen_, true)) {
    if (settings_.mode == Mode::sync || handled_ >= known_total_ || alone()) {
      total_ = handled_;
    } else if (first()) {
      // Only node 0 knows how many evaluations are still under way; they are drained, and count.
      total_ = started_;
      end_came_ = true;
      node_.send(
          1, {MessageKind::control,
              forward_tag,
              pack(ForwardFrame{static_cast<std::uint32_t>(started_), ForwardFrame::end, 0, set_}),
              {}});
    }
  }
  if (node_.evaluation_due(handled_)) snapshot();
}

// ---- A move.

void Participant::move(std::size_t b) {
  Block& block = blocks_[b];
  const double step = settings_.step_after(handled_);
  const BlockSettings& own = settings_.block;
  if (block.estimates() && own.estimator == Estimate::linear) {
    node_.compute(estimator_fit_kernel(own.window, block.count()), [&] { block.fit(); });
    node_.compute(reduce_kernel(block.count()), [&] { block.score(step); });
  } else if (block.estimates()) {
    const auto entries = static_cast<std::int64_t>(block.window_size());
    node_.compute(fit_kernel(own, entries), [&] { block.fit(); });
    node_.compute(score_kernel(own), [&] { block.score(step); });
  }
  node_.compute(fill_kernel(block.count()), [&] { block.fill(step); });
  node_.compute(write_kernels_[b],
                [&] { coordinates_[b]->write(block.current(), stage_->parameters()); });
  ++revision_;
  if (settings_.mode == Mode::sync) return;

  const NoteFrame note{block_base_ + static_cast<std::uint32_t>(b),
                       static_cast<std::uint32_t>(handled_ - 1)};
  if (first()) {
    take_note(note);
  } else if (!all_forwards_in()) {  // else node 0 starts nothing more
    awaited_ = "its note to be taken";
    node_.send(0, {MessageKind::control, note_tag, pack(note), {}});
  }
}

bool Participant::move_one() {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const std::size_t b = (next_to_move_ + i) % blocks_.size();
    if (!blocks_[b].may_move()) continue;
    next_to_move_ = (b + 1) % blocks_.size();
    move(b);
    return true;
  }
  return false;
}

void Participant::move_all() {
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b].may_move()) move(b);
  }
}

// ---- Books.

Message Participant::await(Source source, const std::string& what) {
  awaited_ = what + " from " + node_.name(source.peer);
  return node_.recv(source);
}

void Participant::log_move(std::size_t b, const Move& move, std::int64_t k) {
  node_.log(handled_, "move", none, 0, [&] {
    const auto staleness = static_cast<double>(handled_ - 1 - move.newest);
    stalenesses_.push_back(staleness);
    Node::Figures extra{{"block", static_cast<double>(block_base_ + b)},
                        {"move", static_cast<double>(move.number)},
                        {"newest", static_cast<double>(move.newest + 1)},
                        {"staleness", staleness},
                        {"evaluation", static_cast<double>(k + 1)},
                        {"step_size", move.step}};
    if (std::isfinite(move.predicted)) {
      extra["predicted"] = move.predicted;
      extra["predicted_change"] = move.predicted_change;
    }
    if (std::isfinite(move.rank_correlation)) extra["rank_correlation"] = move.rank_correlation;
    return extra;
  });
}

void Participant::snapshot() {
  // The best composite as of result handled_: the same at every node.
  const auto parameters = stage_->parameters();
  std::vector<float> best(parameters.begin(), parameters.end());
  for (std::size_t b = 0; b < blocks_.size(); ++b) coordinates_[b]->write(blocks_[b].best(), best);
  node_.snapshot(handled_, offset_, best);
}

void Participant::finish() {
  if (!node_.evaluation_due(handled_)) snapshot();
  if (settings_.mode == Mode::async && end_came_) {
    // Nobody leaves while another may still send it a note.
    if (!first()) {
      node_.send(0, {MessageKind::control, note_tag, pack(NoteFrame{NoteFrame::farewell, 0}), {}});
    } else {
      for (int peer = 1; peer < node_.size(); ++peer) {
        while (unpack_note(await({peer, note_tag}, "the farewell").header).block !=
               NoteFrame::farewell) {
        }
      }
    }
  }
  node_.log(handled_, "end", none, 0, [&] {
    Node::Figures extra{{"evaluations", static_cast<double>(handled_)},
                        {"images_computed", static_cast<double>(computed_ * samples_)},
                        {"moves", static_cast<double>(stalenesses_.size())}};
    if (!stalenesses_.empty()) {
      std::sort(stalenesses_.begin(), stalenesses_.end());
      const double count = static_cast<double>(stalenesses_.size());
      extra["staleness_mean"] =
          std::accumulate(stalenesses_.begin(), stalenesses_.end(), 0.0) / count;
      extra["staleness_p95"] = stalenesses_[static_cast<std::size_t>(std::ceil(0.95 * count)) - 1];
    }
    return extra;
  });
}

}  // namespace orrery::nd_cao
