#include "base/option.hh"

#include <stdexcept>

namespace orrery {
namespace {

template <typename T>
const T& get(const std::map<std::string, OptionValue>& values, const std::string& name) {
  const auto found = values.find(name);
  if (found == values.end()) throw std::logic_error("option '" + name + "' was never declared");
  const T* value = std::get_if<T>(&found->second);
  if (!value) throw std::logic_error("option '" + name + "' was read as another type");
  return *value;
}

}  // namespace

Options::Options(const std::vector<OptionSpec>& specs) {
  for (const OptionSpec& spec : specs) values_[spec.name] = spec.fallback;
}

bool Options::boolean(const std::string& name) const { return get<bool>(values_, name); }
std::int64_t Options::integer(const std::string& name) const {
  return get<std::int64_t>(values_, name);
}
double Options::number(const std::string& name) const { return get<double>(values_, name); }
const std::string& Options::text(const std::string& name) const {
  return get<std::string>(values_, name);
}

}  // namespace orrery
