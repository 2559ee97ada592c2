#include "base/error.hh"

#include <cerrno>
#include <system_error>

namespace orrery {

SystemError::SystemError(const std::string& attempted, int error_number)
    : Error(attempted + ": " + std::generic_category().message(error_number)),
      error_number_(error_number) {}

void throw_errno(const std::string& attempted) { throw SystemError(attempted, errno); }

}  // namespace orrery
