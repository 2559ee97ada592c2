// Serves the metrics of runs that go on, in the Prometheus text format, at http://ADDRESS/metrics.
#pragma once

#include <memory>
#include <string>

#include "proto/record_stream.hh"

namespace orrery::metrics {

class Families;

/// Keeps the metric families up to date from the runs' records. Safe to use from several threads.
class Book {
 public:
  Book();
  ~Book();
  Book(const Book&) = delete;
  Book& operator=(const Book&) = delete;

  /// Where the records of one run go. The Book must outlive it; one thread at a time uses it.
  std::unique_ptr<RecordSink> sink(const std::string& run);
  void set_host_seconds(const std::string& run, double seconds);
  /// The exposition text, as a scraper would get it.
  std::string text() const;

 private:
  friend class Exporter;
  std::unique_ptr<Families> families_;
};

/// Serves a Book over HTTP for as long as it lives; the Book may end before it.
class Exporter {
 public:
  /// `address` is "HOST:PORT", ":PORT" or "PORT"; port 0 takes a free one. Throws ValueError for a
  /// text that is no address and MachineError for one that cannot be listened on.
  Exporter(const Book& book, const std::string& address);
  ~Exporter();
  int port() const;

 private:
  struct Server;
  std::unique_ptr<Server> server_;
};

}  // namespace orrery::metrics
