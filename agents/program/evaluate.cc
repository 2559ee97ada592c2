#include "agents/program/evaluate.hh"

#include <cstring>
#include <filesystem>
#include <map>
#include <vector>

#include "base/error.hh"
#include "proto/record_stream.hh"

namespace orrery {
namespace {

struct Assembled {
  std::vector<float> values;
  std::int64_t filled = 0;
};

struct Collected {
  std::map<std::int64_t, Assembled> models;    // by step
  std::map<std::int64_t, std::int64_t> times;  // of a step's last row
};

Collected collect(const std::string& records_dir, std::int64_t parameters) {
  Collected all;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(records_dir))
    if (entry.path().filename().string().starts_with("node-")) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths)
    RecordFileReader(path).poll([&](const wire::Record& record) {
      if (record.has_step() && record.step().phase() != "move") {
        std::int64_t& t = all.times[record.step().step()];
        t = std::max(t, record.step().t());
      }
      if (!record.has_snapshot()) return;
      const wire::Snapshot& part = record.snapshot();
      Assembled& model = all.models[part.step()];
      model.values.resize(static_cast<std::size_t>(parameters));
      const auto count = static_cast<std::int64_t>(part.values().size() / sizeof(float));
      if (part.offset() < 0 || part.offset() + count > parameters)
        throw Error(path + " holds parameters beyond the model's end");
      std::memcpy(model.values.data() + part.offset(), part.values().data(), part.values().size());
      model.filled += count;
    });
  return all;
}

}  // namespace

int evaluate_snapshots(const RunSpec& spec, const Dataset& data, Kernels& kernels,
                       const std::string& records_dir) {
  const ModelSpec model = spec.workload.view().model;
  const Collected all = collect(records_dir, model.parameter_count());
  const std::string path = records_dir + "/evaluations.bin";
  std::filesystem::remove(path);
  RecordFileWriter out(path);
  constexpr std::int64_t batch = 1000;
  int written = 0;
  for (const auto& [step, assembled] : all.models) {
    if (assembled.filled < model.parameter_count()) continue;
    const auto stage = kernels.make_stage(model, 0, model.layer_count(), assembled.values);
    std::int64_t correct = 0;
    double loss = 0;
    for (std::int64_t first = 0; first < spec.workload.test_images; first += batch) {
      const std::int64_t n = std::min(batch, spec.workload.test_images - first);
      const Tensor logits =
          stage->forward(make_batch(data, data.test, first, n, model.input_shape));
      const std::span<const std::uint8_t> labels =
          std::span(data.test.labels)
              .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(n));
      correct += kernels.correct(logits, labels);
      loss += kernels.loss(logits, labels) * static_cast<double>(n);
    }
    const auto images = static_cast<double>(spec.workload.test_images);
    wire::Record record;
    wire::Evaluation* evaluation = record.mutable_evaluation();
    const auto time = all.times.find(step);
    evaluation->set_t(time == all.times.end() ? 0 : time->second);
    evaluation->set_step(step);
    evaluation->set_accuracy(static_cast<double>(correct) / images);
    evaluation->set_loss(loss / images);
    out.write(record);
    ++written;
  }
  return written;
}

}  // namespace orrery
