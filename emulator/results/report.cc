#include "emulator/results/report.hh"

#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "emulator/results/report_data.hh"
#include "emulator/results/report_parts.hh"

namespace orrery::results {
namespace {

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

// Within <script> only "<" can end the element or open a comment; in JSON it occurs in strings
// only, where \u003c means the same.
std::string escape_script(std::string_view json) {
  std::string escaped;
  for (const char c : json) {
    if (c == '<')
      escaped += "\\u003c";
    else if (c == '>')
      escaped += "\\u003e";
    else if (c == '&')
      escaped += "\\u0026";
    else
      escaped += c;
  }
  return escaped;
}

// Replaces each {{name}} once; what is put in is not looked at again.
std::string fill(std::string_view page, const std::map<std::string_view, std::string_view>& parts) {
  std::string filled;
  for (;;) {
    const auto open = page.find("{{");
    if (open == std::string_view::npos) return filled.append(page);
    const auto close = page.find("}}", open);
    const auto part = parts.find(page.substr(open + 2, close - open - 2));
    if (close == std::string_view::npos || part == parts.end())
      throw std::logic_error("template.html names a part that there is not");
    filled.append(page.substr(0, open)).append(part->second);
    page.remove_prefix(close + 2);
  }
}

}  // namespace

std::string report_html(const std::string& title, std::span<const RunView> runs,
                        const ReportLimits& limits) {
  const auto data = report_data(title, runs, limits);
  const std::string json =
      escape_script(data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  const std::string shown_title = escape_html(title);
  return fill(template_html_text, {{"title", shown_title},
                                   {"style", report_css_text},
                                   {"script", report_js_text},
                                   {"data", json}});
}

}  // namespace orrery::results
