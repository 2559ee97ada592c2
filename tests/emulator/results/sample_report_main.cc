// Writes made-up reports, to look at and for tests/browser/report_test.py:
//   sample_report suite|hostile FILE
#include <iostream>

#include "base/fd.hh"
#include "tests/emulator/results/sample_suite.hh"

int main(int argc, char** argv) {
  const std::string which = argc == 3 ? argv[1] : "";
  if (which != "suite" && which != "hostile") {
    std::cerr << "usage: sample_report suite|hostile FILE\n";
    return 2;
  }
  using namespace orrery::results::testing;
  orrery::write_file(argv[2], which == "suite" ? sample_report() : hostile_report());
}
