// Every metric that Orrery exports: the only place where they are named. The exporter,
// docs/metrics.md, the dashboards and the tests are made from, or checked against, this table.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace orrery::metrics {

enum class Type { gauge, counter };

enum class Id : std::size_t {
  run_info,
  run_state,
  emulated_seconds,
  host_seconds,
  loss,
  test_loss,
  test_accuracy,
  steps,
  samples,
  device_busy,
  device_wait,
  node_state,
  sent_bytes,
  sent_messages,
  link_bytes,
  link_packets,
  link_drops,
  link_check,
  link_lateness,
  overruns,
  overrun_seconds,
  timeline_active,
  timeline_lateness,
  records,
};

struct Metric {
  Id id;
  std::string_view name;
  Type type;
  std::string_view unit;    ///< "" for counts without one
  std::string_view labels;  ///< comma-separated, besides `run`, which each has
  std::string_view help;
};

inline constexpr std::array table{
    Metric{Id::run_info, "orrery_run_info", Type::gauge, "", "strategy,seed",
           "1; the labels say what runs"},
    Metric{Id::run_state, "orrery_run_state", Type::gauge, "", "state",
           "1 for the state that the run is in, 0 for the others: running, finished, failed"},
    Metric{Id::emulated_seconds, "orrery_emulated_seconds", Type::gauge, "seconds", "",
           "Emulated time since the start barrier"},
    Metric{Id::host_seconds, "orrery_host_seconds", Type::gauge, "seconds", "",
           "Host time since the run was started"},
    Metric{Id::loss, "orrery_loss", Type::gauge, "", "node,phase",
           "Newest loss that a node logged, on the data that the strategy trains on"},
    Metric{Id::test_loss, "orrery_test_loss", Type::gauge, "", "",
           "Loss on the test set at the newest evaluation"},
    Metric{Id::test_accuracy, "orrery_test_accuracy_ratio", Type::gauge, "ratio", "",
           "Accuracy on the test set at the newest evaluation"},
    Metric{Id::steps, "orrery_steps_total", Type::counter, "", "node,phase",
           "Steps, evaluations, moves and updates that a node logged"},
    Metric{Id::samples, "orrery_samples_total", Type::counter, "", "node",
           "Images passed forward in the steps that a node logged"},
    Metric{Id::device_busy, "orrery_device_busy_seconds_total", Type::counter, "seconds", "node",
           "Emulated time that a node's device computed"},
    Metric{Id::device_wait, "orrery_device_wait_seconds_total", Type::counter, "seconds", "node",
           "Emulated time that a node waited for messages, in the spans that are kept"},
    Metric{Id::node_state, "orrery_node_state", Type::gauge, "", "node,state",
           "1 for the state that a node is in, 0 for those it has left"},
    Metric{Id::sent_bytes, "orrery_sent_bytes_total", Type::counter, "bytes", "node,peer,kind",
           "Payload that a node sent to a peer, by kind; known when the node ends"},
    Metric{Id::sent_messages, "orrery_sent_messages_total", Type::counter, "", "node,peer,kind",
           "Messages that a node sent to a peer, by kind; known when the node ends"},
    Metric{Id::link_bytes, "orrery_link_bytes_total", Type::counter, "bytes", "link",
           "Bytes that a directed link carried, all framing of its layer included"},
    Metric{Id::link_packets, "orrery_link_packets_total", Type::counter, "", "link",
           "Packets that a directed link carried"},
    Metric{Id::link_drops, "orrery_link_dropped_packets_total", Type::counter, "", "link",
           "Packets that a directed link dropped, by loss or a full queue"},
    Metric{Id::link_check, "orrery_link_measured_over_asked_ratio", Type::gauge, "ratio",
           "link,property", "What the check before the run measured, over what was asked"},
    Metric{Id::link_lateness, "orrery_link_release_lateness_seconds", Type::gauge, "seconds",
           "link", "Live engine, fabric: 99th percentile of how late packets left a link so far"},
    Metric{Id::overruns, "orrery_overruns_total", Type::counter, "", "node",
           "Live engine: kernels that the host took longer for than the device would have"},
    Metric{Id::overrun_seconds, "orrery_overrun_seconds_total", Type::counter, "seconds", "node",
           "Live engine: by how much the host took longer for kernels"},
    Metric{Id::timeline_active, "orrery_timeline_event_active", Type::gauge, "", "event,target",
           "1 while an event of the timeline is in force, 0 when it has ended"},
    Metric{Id::timeline_lateness, "orrery_timeline_lateness_seconds", Type::gauge, "seconds",
           "event,target", "When the event's newest change took place, minus when it was planned"},
    Metric{Id::records, "orrery_records_total", Type::counter, "", "",
           "Records that were read from the run"},
};

constexpr const Metric& metric(Id id) { return table[static_cast<std::size_t>(id)]; }

/// docs/metrics.md, whole.
std::string metrics_markdown();

}  // namespace orrery::metrics
