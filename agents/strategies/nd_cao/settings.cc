#include "agents/strategies/nd_cao/settings.hh"

#include <algorithm>

namespace orrery::nd_cao {

double Settings::step_after(std::int64_t published) const {
  if (budget <= 0) return step;
  const double done = std::min(1.0, static_cast<double>(published) / static_cast<double>(budget));
  return step * (1 - (1 - step_end) * done);
}

std::vector<OptionSpec> option_specs() {
  const auto whole = [](std::int64_t value) { return OptionValue(value); };
  const auto word = [](const char* value) { return OptionValue(std::string(value)); };
  return {
      {.name = "mode",
       .kind = OptionKind::choice,
       .fallback = word("sync"),
       .help = "sync: every block moves after each evaluation; async: each when it can",
       .choices = {"sync", "async"}},
      {.name = "in_flight",
       .kind = OptionKind::integer,
       .fallback = whole(2),
       .help = "async: evaluations under way at once (W)",
       .minimum = 1,
       .maximum = 64},
      {.name = "staleness",
       .kind = OptionKind::integer,
       .fallback = whole(4),
       .help = "async: results that a block may have had since its last move before no evaluation "
               "is started; above in_flight, or 1 with in_flight 1 (a barrier)",
       .minimum = 1},
      {.name = "move_after",
       .kind = OptionKind::choice,
       .fallback = word("trial"),
       .help = "async: a block moves again when its version has been in an evaluation and fewer "
               "than in_flight wait for their loss (trial), or when its version has a loss (loss)",
       .choices = {"trial", "loss"}},
      {.name = "step",
       .kind = OptionKind::number,
       .fallback = 0.15,
       .help = "half-width of the uniform candidates, in units of step_scale",
       .minimum = 0},
      {.name = "step_end",
       .kind = OptionKind::number,
       .fallback = 0.05,
       .help = "share of the step that is left when the evaluations are spent (linear decay)",
       .minimum = 0,
       .maximum = 1},
      {.name = "step_scale",
       .kind = OptionKind::choice,
       .fallback = word("fan_in"),
       .help = "unit of the step: 1/sqrt(fan-in) of the parameter's layer, or 1",
       .choices = {"fan_in", "absolute"}},
      {.name = "last_step",
       .kind = OptionKind::number,
       .fallback = 1.0,
       .help = "factor on the step in the model's last layer with parameters",
       .minimum = 0},
      {.name = "estimator",
       .kind = OptionKind::choice,
       .fallback = word("monomial"),
       .help =
           "what a block makes of its window. monomial: candidates are judged by a fit of random "
           "monomials; linear: the centre moves down the regression of losses on own offsets, "
           "their trend taken out, and a move is one random candidate about it (write centre: "
           "mean); none: a move is one random candidate",
       .choices = {"monomial", "linear", "none"}},
      {.name = "monomials",
       .kind = OptionKind::integer,
       .fallback = whole(150),
       .help = "random monomials of orders 1 to 3 in an estimate (M)",
       .minimum = 1},
      {.name = "candidates",
       .kind = OptionKind::integer,
       .fallback = whole(250),
       .help = "candidates a move (N); none is truly evaluated",
       .minimum = 1},
      {.name = "top",
       .kind = OptionKind::integer,
       .fallback = whole(1),
       .help = "a move goes in the mean direction of this many best candidates; 1: to the best one",
       .minimum = 1},
      {.name = "window",
       .kind = OptionKind::integer,
       .fallback = whole(30),
       .help = "own versions whose losses a fit sees (T)",
       .minimum = 5},
      {.name = "ridge",
       .kind = OptionKind::number,
       .fallback = 10.0,
       .help = "ridge penalty of the fit (lambda)",
       .minimum = 1e-9},
      {.name = "centre",
       .kind = OptionKind::choice,
       .fallback = word("best"),
       .help = "what candidates surround: the block's part of the best composite, its own version "
               "in force, or a point of its own that the linear estimate moves",
       .choices = {"best", "current", "mean"}},
      {.name = "gain",
       .kind = OptionKind::number,
       .fallback = 0.06,
       .help = "estimator linear: how far each fit moves the centre, in steps (root mean square)",
       .minimum = 0},
      {.name = "antithetic",
       .kind = OptionKind::boolean,
       .fallback = false,
       .help = "candidates in pairs, centre plus and minus the same"},
      {.name = "partition",
       .kind = OptionKind::choice,
       .fallback = word("layer"),
       .help = "how one node's parameters are cut into blocks",
       .choices = {"layer", "tensor", "rows", "chunks", "random"}},
      {.name = "blocks_per_node",
       .kind = OptionKind::integer,
       .fallback = whole(1),
       .help = "blocks a node, for rows, chunks and random",
       .minimum = 1},
      {.name = "balance",
       .kind = OptionKind::choice,
       .fallback = word("flops"),
       .help =
           "what stages share out: forward flops by device speed, or parametric layers by count",
       .choices = {"flops", "count"}},
      {.name = "caching",
       .kind = OptionKind::boolean,
       .fallback = true,
       .help = "a stage whose input and parameters are unchanged says so and computes nothing"},
      {.name = "input_rank",
       .kind = OptionKind::integer,
       .fallback = whole(0),
       .help = "the first layer moves in this many principal components of its own inputs; 0: in "
               "its weights",
       .minimum = 0},
      {.name = "input_whitening",
       .kind = OptionKind::number,
       .fallback = 0.5,
       .help = "with input_rank: a component of root mean square s is stepped by (s_1/s) to this "
               "power",
       .minimum = 0,
       .maximum = 1},
      {.name = "set_every",
       .kind = OptionKind::integer,
       .fallback = whole(0),
       .help = "evaluations after which the objective set is replaced by the next training images "
               "and the best is evaluated again; 0: never",
       .minimum = 0},
  };
}

Settings read_settings(const Options& options, const StopRule& stop) {
  Settings settings;
  settings.mode = options.text("mode") == "async" ? Mode::async : Mode::sync;
  settings.in_flight =
      settings.mode == Mode::sync ? 1 : static_cast<int>(options.integer("in_flight"));
  settings.staleness = static_cast<int>(options.integer("staleness"));
  settings.caching = options.boolean("caching");
  settings.balance_by_flops = options.text("balance") == "flops";
  const std::string& partition = options.text("partition");
  settings.partition = partition == "layer"    ? Partition::layer
                       : partition == "tensor" ? Partition::tensor
                       : partition == "rows"   ? Partition::rows
                       : partition == "chunks" ? Partition::chunks
                                               : Partition::random;
  settings.blocks_per_node = static_cast<int>(options.integer("blocks_per_node"));
  settings.step = options.number("step");
  settings.step_end = options.number("step_end");
  settings.last_step = options.number("last_step");
  settings.step_by_fan_in = options.text("step_scale") == "fan_in";
  settings.input_rank = static_cast<int>(options.integer("input_rank"));
  settings.input_whitening = options.number("input_whitening");
  settings.set_every = options.integer("set_every");
  settings.budget = stop.evaluations.value_or(0);
  const std::string& estimator = options.text("estimator");
  settings.block.estimator = estimator == "monomial" ? Estimate::monomial
                             : estimator == "linear" ? Estimate::linear
                                                     : Estimate::none;
  settings.block.monomials = options.integer("monomials");
  settings.block.candidates = options.integer("candidates");
  settings.block.top = options.integer("top");
  settings.block.window = options.integer("window");
  settings.block.ridge = options.number("ridge");
  const std::string& centre = options.text("centre");
  settings.block.centre = centre == "best"      ? Centre::best
                          : centre == "current" ? Centre::current
                                                : Centre::mean;
  settings.block.gain = options.number("gain");
  settings.block.move_after =
      options.text("move_after") == "trial" ? MoveAfter::trial : MoveAfter::loss;
  settings.block.ahead = static_cast<std::size_t>(settings.in_flight);
  settings.block.antithetic = options.boolean("antithetic");

  if (settings.mode == Mode::async && settings.staleness <= settings.in_flight &&
      !(settings.staleness == 1 && settings.in_flight == 1)) {
    throw PlacementError("staleness " + std::to_string(settings.staleness) + " with in_flight " +
                         std::to_string(settings.in_flight) +
                         " could wait for ever; write a staleness of " +
                         std::to_string(settings.in_flight + 1) + " or more");
  }
  if ((settings.block.estimator == Estimate::linear) != (settings.block.centre == Centre::mean)) {
    throw PlacementError(
        "the linear estimate and the centre that it moves go together; write estimator: linear "
        "with centre: mean, or neither");
  }
  if (settings.block.top > settings.block.candidates) {
    throw PlacementError("top " + std::to_string(settings.block.top) + " of " +
                         std::to_string(settings.block.candidates) +
                         " candidates cannot be; write at most as many as there are candidates");
  }
  if (settings.input_rank > 0 && settings.partition != Partition::layer &&
      settings.partition != Partition::rows) {
    throw PlacementError("input_rank needs blocks of whole rows; write partition: layer or rows");
  }
  return settings;
}

}  // namespace orrery::nd_cao
