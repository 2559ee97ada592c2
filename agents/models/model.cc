#include "agents/models/model.hh"

#include <algorithm>
#include <stdexcept>

namespace orrery {
namespace {

std::int64_t product(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t extent : shape)
    text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

[[noreturn]] void misfit(const LayerSpec& layer, const std::vector<std::int64_t>& shape,
                         const std::string& wanted) {
  throw std::logic_error("layer " + layer.name + " is given a sample of shape " +
                         shape_text(shape) + "; it takes " + wanted);
}

std::vector<std::int64_t> shape_through(const LayerSpec& layer, std::vector<std::int64_t> shape) {
  switch (layer.kind) {
    case LayerKind::linear:
      if (shape.size() != 1 || shape[0] != layer.in) {
        misfit(layer, shape, std::to_string(layer.in));
      }
      return {layer.out};
    case LayerKind::conv2d: {
      const std::int64_t shrink = layer.kernel - 1 - 2 * layer.padding;
      if (shape.size() != 3 || shape[0] != layer.in || shape[1] <= shrink || shape[2] <= shrink) {
        misfit(layer, shape,
               std::to_string(layer.in) + " channels of more than " + std::to_string(shrink) +
                   " rows and columns");
      }
      return {layer.out, shape[1] - shrink, shape[2] - shrink};
    }
    case LayerKind::max_pool2d:
      if (shape.size() != 3 || shape[1] < layer.kernel || shape[2] < layer.kernel) {
        misfit(layer, shape,
               "channels of at least " + std::to_string(layer.kernel) + " rows and columns");
      }
      // Rows and columns that do not fill a window are dropped, as libtorch does.
      return {shape[0], shape[1] / layer.kernel, shape[2] / layer.kernel};
    case LayerKind::flatten:
      return {product(shape)};
    case LayerKind::tanh:
    case LayerKind::relu:
      return shape;
  }
  throw std::logic_error("layer " + layer.name + " is of no known kind");
}

void check_range(const ModelSpec& model, int first, int last) {
  if (first < 0 || last < first || last > model.layer_count()) {
    throw std::logic_error("layers [" + std::to_string(first) + ", " + std::to_string(last) +
                           ") of " + model.name + ", which has " +
                           std::to_string(model.layer_count()));
  }
}

/// Weight and bias of one layer, offsets from its own start; none for a layer without parameters.
std::vector<ParameterSpec> layer_parameters(const LayerSpec& layer) {
  std::vector<std::int64_t> weight;
  if (layer.kind == LayerKind::linear) weight = {layer.out, layer.in};
  if (layer.kind == LayerKind::conv2d) weight = {layer.out, layer.in, layer.kernel, layer.kernel};
  if (weight.empty()) return {};
  const std::int64_t count = product(weight);
  return {{layer.name, "weight", weight, 0, count},
          {layer.name, "bias", {layer.out}, count, layer.out}};
}

}  // namespace

std::vector<std::int64_t> ModelSpec::shape_after(int i) const {
  check_range(*this, 0, i + 1);
  std::vector<std::int64_t> shape = input_shape;
  for (int layer = 0; layer <= i; ++layer) {
    shape = shape_through(layers[static_cast<std::size_t>(layer)], std::move(shape));
  }
  return shape;
}

std::int64_t ModelSpec::elements_after(int i) const { return product(shape_after(i)); }

std::vector<ParameterSpec> ModelSpec::parameters(int first, int last) const {
  check_range(*this, first, last);
  std::vector<ParameterSpec> all;
  std::int64_t offset = 0;
  for (int i = 0; i < last; ++i) {
    std::int64_t here = 0;
    for (ParameterSpec& parameter : layer_parameters(layers[static_cast<std::size_t>(i)])) {
      here += parameter.count;
      parameter.offset += offset;
      if (i >= first) all.push_back(std::move(parameter));
    }
    offset += here;
  }
  return all;
}

std::int64_t ModelSpec::parameter_count(int first, int last) const {
  std::int64_t count = 0;
  for (const ParameterSpec& parameter : parameters(first, last)) count += parameter.count;
  return count;
}

double ModelSpec::forward_flops(int first, int last) const {
  check_range(*this, first, last);
  double flops = 0;
  std::vector<std::int64_t> shape = shape_after(first - 1);
  for (int i = first; i < last; ++i) {
    const LayerSpec& layer = layers[static_cast<std::size_t>(i)];
    const std::vector<std::int64_t> next = shape_through(layer, shape);
    switch (layer.kind) {
      case LayerKind::linear:
        flops += 2.0 * static_cast<double>(layer.in * layer.out);
        break;
      case LayerKind::conv2d:
        flops += 2.0 * static_cast<double>(layer.in * layer.kernel * layer.kernel) *
                 static_cast<double>(product(next));
        break;
      case LayerKind::tanh:
      case LayerKind::relu:
        flops += static_cast<double>(product(next));
        break;
      case LayerKind::max_pool2d:
        flops += static_cast<double>(layer.kernel * layer.kernel * product(next));
        break;
      case LayerKind::flatten:
        break;
    }
    shape = next;
  }
  return flops;
}

std::vector<int> ModelSpec::parametric_layers() const {
  std::vector<int> found;
  for (int i = 0; i < layer_count(); ++i) {
    const LayerKind kind = layers[static_cast<std::size_t>(i)].kind;
    if (kind == LayerKind::linear || kind == LayerKind::conv2d) found.push_back(i);
  }
  return found;
}

ModelSpec make_mlp(const std::vector<std::int64_t>& widths, LayerKind activation) {
  if (widths.size() < 2 ||
      std::any_of(widths.begin(), widths.end(), [](auto w) { return w < 1; })) {
    throw std::logic_error("an MLP needs at least two widths, each at least 1");
  }
  if (activation != LayerKind::tanh && activation != LayerKind::relu) {
    throw std::logic_error("the activation of an MLP is tanh or relu");
  }
  const std::string activation_name = activation == LayerKind::tanh ? "tanh" : "relu";
  ModelSpec model;
  model.name = "mlp:";
  for (const std::int64_t width : widths) {
    model.name += (model.name.back() == ':' ? "" : "-") + std::to_string(width);
  }
  model.name += ":" + activation_name;
  model.input_shape = {widths.front()};
  model.classes = widths.back();
  for (std::size_t i = 1; i < widths.size(); ++i) {
    if (i > 1) {
      model.layers.push_back({activation_name + std::to_string(i - 1), activation, 0, 0, 0, 0});
    }
    model.layers.push_back(
        {"linear" + std::to_string(i), LayerKind::linear, widths[i - 1], widths[i], 0, 0});
  }
  return model;
}

ModelSpec make_lenet5(std::int64_t edge, std::int64_t classes) {
  if (edge < 12 || classes < 1) {
    throw std::logic_error("LeNet-5 needs images of at least 12 × 12 and at least one class");
  }
  ModelSpec model;
  model.name = "lenet5:" + std::to_string(edge) + ":" + std::to_string(classes);
  model.input_shape = {1, edge, edge};
  model.classes = classes;
  // The first convolution is padded, as LeCun's 32 × 32 frame around 28 × 28 digits was.
  model.layers = {
      {"conv1", LayerKind::conv2d, 1, 6, 5, 2},     {"tanh1", LayerKind::tanh, 0, 0, 0, 0},
      {"pool1", LayerKind::max_pool2d, 0, 0, 2, 0}, {"conv2", LayerKind::conv2d, 6, 16, 5, 0},
      {"tanh2", LayerKind::tanh, 0, 0, 0, 0},       {"pool2", LayerKind::max_pool2d, 0, 0, 2, 0},
      {"flatten", LayerKind::flatten, 0, 0, 0, 0},
  };
  const std::int64_t features = model.elements_after(6);
  model.layers.push_back({"linear1", LayerKind::linear, features, 120, 0, 0});
  model.layers.push_back({"tanh3", LayerKind::tanh, 0, 0, 0, 0});
  model.layers.push_back({"linear2", LayerKind::linear, 120, 84, 0, 0});
  model.layers.push_back({"tanh4", LayerKind::tanh, 0, 0, 0, 0});
  model.layers.push_back({"linear3", LayerKind::linear, 84, classes, 0, 0});
  return model;
}

}  // namespace orrery
