// The words of the experiment file for our enumerations.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/config/experiment.hh"

namespace orrery::config {

template <typename E>
struct Names;  // static constexpr std::pair<std::string_view, E> table[]

template <>
struct Names<Cost> {
  static constexpr std::pair<std::string_view, Cost> table[] = {{"model", Cost::model},
                                                                {"profile", Cost::profile}};
};
template <>
struct Names<Shape> {
  static constexpr std::pair<std::string_view, Shape> table[] = {
      {"star", Shape::star},         {"chain", Shape::chain},       {"ring", Shape::ring},
      {"mesh", Shape::mesh},         {"dumbbell", Shape::dumbbell}, {"tree", Shape::tree},
      {"fat_tree", Shape::fat_tree}, {"bigraph", Shape::bigraph}};
};
template <>
struct Names<Distribution> {
  static constexpr std::pair<std::string_view, Distribution> table[] = {
      {"uniform", Distribution::uniform},
      {"normal", Distribution::normal},
      {"pareto", Distribution::pareto},
      {"paretonormal", Distribution::paretonormal}};
};
template <>
struct Names<Layer> {
  static constexpr std::pair<std::string_view, Layer> table[] = {{"wire", Layer::wire},
                                                                 {"l2", Layer::l2}};
};
template <>
struct Names<ModelKind> {
  static constexpr std::pair<std::string_view, ModelKind> table[] = {{"mlp", ModelKind::mlp},
                                                                     {"lenet5", ModelKind::lenet5}};
};
template <>
struct Names<Activation> {
  static constexpr std::pair<std::string_view, Activation> table[] = {{"tanh", Activation::tanh},
                                                                      {"relu", Activation::relu}};
};
template <>
struct Names<Direction> {
  static constexpr std::pair<std::string_view, Direction> table[] = {
      {"up", Direction::up}, {"down", Direction::down}, {"both", Direction::both}};
};

template <typename E>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const auto& [name, value] : Names<E>::table) names.emplace_back(name);
  return names;
}

template <typename E>
std::string name_of(E wanted) {
  for (const auto& [name, value] : Names<E>::table)
    if (value == wanted) return std::string(name);
  throw std::logic_error("an enumerator has no name");
}

/// `text` is one of the names: the schema has checked it.
template <typename E>
E value_of(std::string_view text) {
  for (const auto& [name, value] : Names<E>::table)
    if (name == text) return value;
  throw std::logic_error("no enumerator is named '" + std::string(text) + "'");
}

}  // namespace orrery::config
