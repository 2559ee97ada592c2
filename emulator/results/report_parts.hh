// The report's page as it lies in emulator/results/report/, built in.
#pragma once

#include <string_view>

namespace orrery::results {

extern const std::string_view template_html_text;
extern const std::string_view report_css_text;
extern const std::string_view report_js_text;

}  // namespace orrery::results
