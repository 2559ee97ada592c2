#include "emulator/config/experiment_schema.hh"

#include "base/error.hh"
#include "emulator/config/device_profiles.hh"
#include "emulator/config/names.hh"
#include "netshape/profiles.hh"

namespace orrery::config {
namespace {

std::string text_of(const Queue& queue) { return to_string(queue); }

TypePtr node_names() {
  return quantity("a node, or a range as in `board[0-3]`",
                  "^[A-Za-z][A-Za-z0-9_-]*(\\[[0-9,-]+\\][A-Za-z0-9_-]*)?$",
                  [](const std::string& text) { expand_names(text); });
}

TypePtr node_list() { return scalar_or_list(node_names(), list_of(node_names(), "them", 1)); }

TypePtr version() {
  return quantity("`1`", "^1$", [](const std::string& text) {
    if (text != "1")
      throw ValueError("format '" + text + "' is not known to this program; write 1");
  });
}

TypePtr flop_rate() {
  return quantity("a compute rate, as in `4GFLOP/s`, or `unlimited`",
                  "^([0-9]*\\.?[0-9]+([eE][-+]?[0-9]+)? ?[kMGT]?FLOP/s|unlimited)$",
                  [](const std::string& text) { parse_flop_rate(text); });
}

TypePtr byte_rate() {
  return quantity("a memory rate, as in `3GB/s`, or `unlimited`",
                  "^([0-9]*\\.?[0-9]+([eE][-+]?[0-9]+)? ?[kMGT]?B/s|unlimited)$",
                  [](const std::string& text) { parse_byte_rate(text); });
}

TypePtr queue() {
  return quantity("a time, a multiple of the BDP or a size, as in `50ms`, `1bdp`, `256KiB`",
                  "^[0-9]*\\.?[0-9]+([eE][-+]?[0-9]+)? ?(ns|us|ms|s|min|h|bdp|B|[kMG]B|[KMG]iB)$",
                  [](const std::string& text) { parse_queue(text); });
}

TypePtr spans() {
  return quantity("`all`, `none` or `first:N`", "^(all|none|first:[0-9]+)$",
                  [](const std::string& text) {
                    Node number;
                    number.kind = Node::Kind::scalar;
                    number.text = text.starts_with("first:") ? text.substr(6) : "";
                    if (text != "all" && text != "none" && read_integer(number).value_or(-1) < 0)
                      throw ValueError("'" + text +
                                       "' is no choice of spans; write all, none or first:N, as in "
                                       "first:1000");
                  });
}

TypePtr positive() { return number(0.0, {}, true); }

TypePtr loss_model() {
  const auto two = object(
      "gilbert_elliott",
      {required("p", probability(), "Of a packet in the good state to be followed by the bad one."),
       required("r", probability(), "Of a packet in the bad state to be followed by the good one."),
       optional("loss_bad", probability(), "Of a packet in the bad state to be lost.", "100%"),
       optional("loss_good", probability(), "Of a packet in the good state to be lost.", "0%")});
  const auto four =
      object("four_state",
             {required("p13", probability(), "From a gap to a loss that begins a burst."),
              required("p31", probability(), "From a loss in a burst to a gap."),
              optional("p32", probability(), "From a loss in a burst to an arrival in it.", "0%"),
              optional("p23", probability(), "From an arrival in a burst to a loss in it.", "100%"),
              optional("p14", probability(), "Of a single loss in a gap.", "0%")});
  const auto model = object(
      "loss_model",
      {optional("gilbert_elliott", two, "Two states, after Gilbert (1960) and Elliott (1963)."),
       optional("four_state", four, "Four states, after Salsano et al. (2012), as in netem.")});
  model->exactly_one({"gilbert_elliott", "four_state"});
  return model;
}

// What a link is. `changes`: within an event, which changes figures and not what the link is.
TypePtr link(bool changes) {
  const Link link;
  std::vector<std::string> profiles;
  for (const netshape::LinkProfile& profile : netshape::link_profiles())
    profiles.emplace_back(profile.name);
  std::vector<Field> fields{
      optional("delay", duration(),
               "One-way delay; node to node it is the sender's `up` plus the "
               "receiver's `down`.",
               "0ms"),
      optional("jitter", duration(),
               "Spread of the delay: half the range if uniform, else a standard deviation.", "0ms"),
      optional("distribution", choice(names_of<Distribution>()), "Of the delay.",
               name_of(link.distribution)),
      optional("rate", word_or({"unlimited"}, bit_rate()), "Capacity.", "unlimited"),
      optional("keep_order", boolean(),
               "Whether packets that jitter holds up hold up those behind them.", "true"),
      optional("loss", probability(), "Share of packets dropped at random.", "0%"),
      optional("loss_burst", number(1.0),
               "How many are lost in a row on average (Gilbert's model); 1: each by itself.", "1"),
      optional("loss_model", loss_model(), "A loss model by its own parameters, instead."),
      optional("duplicate", probability(), "Share of packets that come twice.", "0%"),
      optional("corrupt", probability(), "Share of packets with one bit flipped.", "0%"),
      optional("reorder", probability(), "Share of packets that skip the delay.", "0%"),
      optional("queue", queue(), "Room in front of the rate limiter; what does not fit is dropped.",
               text_of(link.queue)),
      optional("layer", choice(names_of<Layer>()),
               "What the rate counts: frames on the wire with preamble, FCS and gap, as a network "
               "card of that speed does, or layer-2 frames, as a kernel qdisc does.",
               name_of(link.layer))};
  if (!changes)
    fields.insert(fields.begin(),
                  optional("profile", choice(profiles),
                           "A link by name, with its source in docs/links.md; what stands beside "
                           "it overrules it."));
  const auto type = object(changes ? "change" : "link", std::move(fields));
  type->not_both("loss_model", "loss").not_both("loss_model", "loss_burst");
  return type;
}

TypePtr device() {
  std::vector<std::string> profiles;
  for (const DeviceProfile& profile : device_profiles()) profiles.emplace_back(profile.name);
  return object(
      "device",
      {optional("profile", choice(profiles),
                "A built-in device (`orrery list devices` cites the "
                "source of each figure); the keys below overrule it."),
       optional("flops", flop_rate(), "Sustained rate of a float32 matrix product."),
       optional("memory_bandwidth", byte_rate(), "Sustained, bytes read plus bytes written."),
       optional("memory", bytes(), "Size of its memory."),
       optional("message_overhead", duration(), "CPU time to send or to receive one message.",
                "the profile's, else 0us"),
       optional("speed", positive(), "A multiple of all its rates.", "1")});
}

TypePtr cluster(const TypePtr& link_type) {
  const auto node =
      object("node", {required("name", node_names(), "Its name; a range stands for several nodes."),
                      required("device", name(), "A key of `devices`, or a built-in device."),
                      optional("speed", positive(), "A multiple of the device's speed.", "1")});
  const auto access =
      object("links",
             {required("node", node_list(), "Whose link; a later entry overrules an earlier one."),
              optional("up", link_type, "From the node to the switch."),
              optional("down", link_type, "From the switch to the node."),
              optional("both", link_type, "Both directions; `up` and `down` overrule it.")});
  access->at_least_one({"up", "down", "both"});
  const auto wire = object(
      "wires", {required("between", list_of(node_names(), "names", 2, 2),
                         "Its two ends, nodes or switches; a range stands for several."),
                optional("both", link_type, "Both directions; `forth` and `back` overrule it."),
                optional("forth", link_type, "From the first to the second."),
                optional("back", link_type, "From the second to the first.")});
  const auto network =
      object("network",
             {optional("topology", choice(names_of<Shape>()),
                       "Which switches there are and how they are joined; every node has "
                       "one link, to one of them.",
                       "star"),
              optional("arity", integer(2, 256),
                       "Of a `tree`: how many hang on each switch; of a `fat_tree`: k, "
                       "the ports of a switch; of a `bigraph`: the number of switches."),
              optional("trunk", link_type, "Every link between two switches, in both directions."),
              optional("link", link_type, "Every node's link, in both directions."),
              optional("links", list_of(access, "`links` maps"),
                       "What differs from `link`, by node and direction."),
              optional("import", text(),
                       "In place of a topology: the links of a file, a GML graph (`.gml`) or a "
                       "matrix of one-way delays between the nodes (`.csv`)."),
              optional("switches", list_of(node_names(), "names", 1),
                       "With `wires`: the switches; a range stands for several."),
              optional("wires", list_of(wire, "`wires` maps", 1),
                       "In place of a topology by name: every link there is. Each is as `link` "
                       "says, but for what differs; a later entry overrules an earlier one.")});
  for (const char* key : {"topology", "arity", "trunk", "links"}) network->not_both("wires", key);
  return object(
      "cluster",
      {optional("cost", choice(names_of<Cost>()),
                "Where a kernel's emulated time comes from: `profile` measures it on this host and "
                "scales it; `model` computes it from the device's figures, the same on every host.",
                name_of(Cluster{}.cost)),
       optional("devices", map_of(device(), "`device` maps"), "What nodes compute with."),
       required("nodes", list_of(node, "`node` maps", 1), "The machines."),
       required("network", network, "What connects them.")});
}

TypePtr workload() {
  const Workload w;
  const TypePtr count = word_or({"all"}, integer(1));
  return object(
      "workload",
      {required(
           "model", choice(names_of<ModelKind>()),
           "`mlp`: fully connected layers; `lenet5`: two convolutions, three fully connected."),
       optional("layers", list_of(integer(1, 1'000'000), "widths", 2),
                "Of an mlp: its widths from input to output."),
       optional("activation", choice(names_of<Activation>()), "Between layers.",
                name_of(w.activation)),
       optional("dataset", choice({"fashion-mnist"}), "What is learned.", w.dataset),
       optional("path", text(), "A folder of IDX files instead of the data set's own.",
                "where the system keeps it"),
       optional("pool", integer(1, 14),
                "Images are averaged over pool × pool pixels: 2 makes 14×14 of 28×28.",
                std::to_string(w.pool)),
       optional("objective_images", integer(1),
                "The fixed set on which gradient-free strategies measure the loss.",
                std::to_string(w.objective_images)),
       optional("train_images", count, "The first so many images of the training set.", "all"),
       optional("test_images", count, "The first so many images of the test set.", "all")});
}

TypePtr timeline(const TypePtr& link_type) {
  const Field whom = required("node", node_list(), "Whom it happens to.");
  const auto lasts = [](std::string doc) {
    return optional("for", positive_duration(), std::move(doc), "until the run ends");
  };
  const auto step = object(
      "step", {required("at", duration(), "Since the event's beginning; ascending."),
               required("set", link_type, "What is other than in the file until the next step.")});
  const auto trace = object(
      "trace",
      {optional("csv", text(),
                "A table; columns `time`, `rate`, `delay`, `jitter`, `loss`, with units in the "
                "cells or in brackets in the header, as in `rate [Mbit/s]`."),
       optional("mahimahi", text(),
                "Mahimahi's form: each line a millisecond at which a packet may leave."),
       optional("bin", positive_duration(), "Of a Mahimahi trace: one rate each.", "100ms"),
       optional("repeat", boolean(), "From its beginning again and again, as long as `for`.",
                "false")});
  trace->exactly_one({"csv", "mahimahi"});
  const auto flap = object("flap", {required("period", positive_duration(), "How often."),
                                    required("down", positive_duration(), "How long each time.")});
  const auto link_change = object(
      "link_change",
      {optional("node", node_list(), "Whose links."),
       optional("between", list_of(name(), "names", 2, 2),
                "Instead of `node`: the two ends of a link, nodes or switches."),
       optional("direction", choice(names_of<Direction>()),
                "`up`: what leaves the node, or goes from the first end to the second; `down`: the "
                "other.",
                "both"),
       optional("set", link_type, "What changes; the rest stays."),
       optional("steps", list_of(step, "`step` maps", 1),
                "Changes one after the other, each in place of the one before."),
       optional("trace", trace, "Steps from a file."),
       optional("flap", flap, "Steps that cut the link again and again."),
       lasts("How long; then the link is as before.")});
  link_change->exactly_one({"node", "between"});
  link_change->exactly_one({"set", "steps", "trace", "flap"});
  const auto event =
      object("event",
             {required("name", name(), "What `--without` and the report call it."),
              required("at", duration(), "Emulated time since the run's start."),
              optional("slow",
                       object("slow", {whom,
                                       required("factor", positive(),
                                                "Kernels take so many times "
                                                "as long."),
                                       lasts("How long.")}),
                       "A straggler."),
              optional("pause", object("pause", {whom, lasts("How long.")}),
                       "The node stands still: it neither computes nor sends."),
              optional("kill", object("kill", {whom}), "The node's process ends as if by kill -9."),
              optional("restart", object("restart", {whom}),
                       "A killed node's process starts again, with nothing in memory."),
              optional("link", link_change, "Links change.")});
  event->exactly_one({"slow", "pause", "kill", "restart", "link"});
  return list_of(event, "`event` maps");
}

TypePtr stop() {
  const auto type = object(
      "stop", {optional("evaluations", integer(1), "Evaluations of the loss published."),
               optional("steps", integer(1), "Steps of the optimiser."),
               optional("epochs", positive(), "Passes over the training set."),
               optional("time", positive_duration(), "Emulated time."),
               optional("loss", number(), "The objective's loss at or below this; never alone.")});
  type->at_least_one({"evaluations", "steps", "epochs", "time"});
  return type;
}

TypePtr evaluate() {
  return object("evaluate", {required("every", integer(1),
                                      "So many evaluations or steps, whichever the "
                                      "strategy counts.")});
}

TypePtr options_of(const std::string& strategy, const StrategyInfo& info) {
  std::vector<Field> fields;
  for (const OptionSpec& spec : info.options)
    fields.push_back(optional(spec.name, option_type(spec), spec.help));
  return object("options of " + strategy, std::move(fields));
}

TypePtr runs(const StrategyCatalog& strategies) {
  std::vector<std::string> names;
  std::map<std::string, TypePtr> options;
  for (const auto& [strategy, info] : strategies) {
    names.push_back(strategy);
    options[strategy] = options_of(strategy, info);
  }
  const auto stage = object("stage", {required("node", name(), "Which node."),
                                      required("layers", integer(1), "How many layers it takes.")});
  const auto run = object(
      "run",
      {required("name", name(), "What its folder and the report call it."),
       required("strategy", strategies.empty() ? name() : choice(names),
                "The training algorithm (`orrery list strategies`)."),
       optional("options", object("options", {}), "The strategy's options; each has a default."),
       required("stop", stop(), "When it ends: at the first that is reached."),
       optional("seed", unsigned_integer(), "Its own seed.", "the experiment's"),
       optional("seeds",
                scalar_or_list(integer(1, 10'000), list_of(unsigned_integer(), "seeds", 1)),
                "A run for each: a list of seeds, or how many from `seed` up."),
       optional("group", name(), "Runs of one group differ in their seed only.", "the run's name"),
       optional("evaluate", evaluate(), "As the experiment's, for this run."),
       optional(
           "placement", word_or({"auto"}, list_of(stage, "`stage` maps", 1)),
           "Of a strategy that cuts the model into stages: how many layers each node takes, in "
           "order.",
           "auto")});
  run->switch_on("strategy", "options", std::move(options));
  run->not_both("seed", "seeds");
  return list_of(run, "`run` maps", 1);
}

}  // namespace

TypePtr experiment_schema(const StrategyCatalog& strategies) {
  const Experiment e;
  const TypePtr link_type = link(false);
  return object(
      "experiment",
      {required("orrery", version(), "The version of this format."),
       required("name", name(), "What the results' folder is called."),
       optional("description", text(), "A sentence for the report."),
       optional("seed", unsigned_integer(), "From which every random number comes.",
                std::to_string(e.seed)),
       required("cluster", cluster(link_type), "The machines and their network."),
       required("workload", workload(), "What is trained."),
       optional("timeline", timeline(link(true)), "What happens to the cluster, and when."),
       required("runs", runs(strategies), "What is run on the cluster, each run by itself."),
       optional("evaluate", evaluate(),
                "How often test accuracy is evaluated; costs no emulated "
                "time.",
                "every: " + std::to_string(e.evaluate_every)),
       optional("record",
                object("record", {optional("spans", spans(),
                                           "Which steps leave spans in the trace.", "all")}),
                "What is recorded."),
       optional(
           "limits",
           object("limits",
                  {optional("watchdog", positive_duration(),
                            "Host time without progress of emulated time, after which the run "
                            "is ended. Time that the run spent ready while the host ran others "
                            "does not count.",
                            to_string(e.limits.watchdog)),
                   optional("stall", positive_duration(),
                            "Emulated time without progress of the run, after which it is "
                            "ended.",
                            to_string(e.limits.stall))}),
           "When to give up.")});
}

nlohmann::ordered_json experiment_json_schema(const StrategyCatalog& strategies) {
  using Json = nlohmann::ordered_json;
  Json definitions = Json::object();
  const Json root = experiment_schema(strategies)->json_schema(definitions);
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "Orrery experiment"}};
  schema["$ref"] = root["$ref"];
  schema["$defs"] = std::move(definitions);
  return schema;
}

}  // namespace orrery::config
