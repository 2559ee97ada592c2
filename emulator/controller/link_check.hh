// The links as asked, applied and measured, as records.
#pragma once

#include "netshape/backend.hh"
#include "netshape/verify.hh"
#include "proto/record_stream.hh"

namespace orrery::emulator {

/// Measures every link of a network that is idle. "burst" is worked out and not measured: how long
/// the longest super-packet that may cross the link holds its line; 0 where none is longer than a
/// frame.
void record_link_checks(const netshape::Backend& network, RecordSink& records,
                        const netshape::VerifyOptions& options);

}  // namespace orrery::emulator
