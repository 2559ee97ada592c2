#include "tests/exact/guest_output.hh"

#include <cstdio>
#include <sstream>

namespace orrery::test {

Output run_in_kernel(const std::string& program, const std::string& arguments) {
  // As agents have it: host time, not emulated time, depends on these.
  const std::string environment =
      "GRPC_EXPERIMENTS=tcp_frame_size_tuning,tcp_rcv_lowat "
      "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold="
      "8589934592:glibc.malloc.top_pad=16777216:glibc.malloc.arena_max=1 ";
  Output output;
  FILE* pipe =
      ::popen((environment + ORRERY_GUEST + " --mem 1GiB -- " + program + " " + arguments + " 2>&1")
                  .c_str(),
              "r");
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe))
    output.text.append(buffer, n);
  output.status = ::pclose(pipe);
  return output;
}

std::map<std::string, std::string> lines_by_name(const std::string& text) {
  std::map<std::string, std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (const std::size_t space = line.find(' '); space != std::string::npos)
      lines[line.substr(0, space)] = line.substr(space + 1);
  return lines;
}

}  // namespace orrery::test
