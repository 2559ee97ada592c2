#include "emulator/metrics/metrics.hh"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <regex>
#include <set>
#include <sstream>

#include "base/error.hh"
#include "base/fd.hh"
#include "emulator/metrics/exporter.hh"
#include "tests/emulator/results/records.hh"

namespace orrery::metrics {
namespace {

using namespace results::testing;
using ::testing::HasSubstr;
using ::testing::Not;

std::set<std::string> names_of(const std::string& labels) {
  std::set<std::string> names{"run"};
  std::istringstream stream(labels);
  for (std::string name; std::getline(stream, name, ',');) names.insert(name);
  return names;
}

wire::Record heartbeat(std::int64_t t) {
  wire::Record record;
  record.mutable_heartbeat()->set_t(t);
  return record;
}

void feed(Book& book, const std::string& run, const std::vector<wire::Record>& records) {
  const auto sink = book.sink(run);
  for (const wire::Record& record : records) sink->write(record);
  book.set_host_seconds(run, 1.5);
}

// Asks the server on this machine, as a scraper would.
std::string get(int port) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check_system(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address),
               "connect");
  write_all(socket.get(), "GET /metrics HTTP/1.0\r\n\r\n", "request");
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(socket.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  return text;
}

TEST(Table, NamesFollowPrometheusRules) {
  std::set<std::string_view> seen;
  for (const Metric& m : table) {
    EXPECT_TRUE(seen.insert(m.name).second) << m.name;
    EXPECT_TRUE(std::regex_match(std::string(m.name), std::regex("orrery_[a-z_]+")));
    EXPECT_EQ(m.type == Type::counter, m.name.ends_with("_total")) << m.name;
    if (m.unit == "seconds" || m.unit == "bytes") {
      EXPECT_NE(m.name.find(m.unit), std::string_view::npos) << m.name;
    }
    EXPECT_FALSE(m.help.empty());
    EXPECT_NE(m.help.back(), '.') << m.name;
  }
}

TEST(Docs, AreMadeFromTheTable) {
  const std::string path = ORRERY_SOURCE_DIR "/docs/metrics.md";
  if (std::getenv("ORRERY_WRITE_DOCS")) write_file(path, metrics_markdown());
  EXPECT_EQ(read_file(path), metrics_markdown())
      << "run this test once with ORRERY_WRITE_DOCS=1 in the environment";
}

TEST(Exposition, HoldsEveryMetricOfTheTableWithItsLabelsAndNoOther) {
  Book book;
  feed(book, "sgd", small_run());
  const std::string text = book.text();

  std::map<std::string, std::set<std::string>> shown;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) continue;
    const auto brace = line.find('{');
    ASSERT_NE(brace, std::string::npos) << line;
    std::set<std::string>& labels = shown[line.substr(0, brace)];
    const std::string inside = line.substr(brace, line.find('}') - brace);
    const std::regex label("([a-z_]+)=\"");
    for (auto at = std::sregex_iterator(inside.begin(), inside.end(), label);
         at != std::sregex_iterator(); ++at)
      labels.insert((*at)[1]);
  }
  std::set<std::string> expected;
  for (const Metric& m : table) {
    const std::string name(m.name);
    expected.insert(name);
    EXPECT_EQ(shown[name], names_of(std::string(m.labels))) << name;
    EXPECT_THAT(text, HasSubstr("# HELP " + name + " " + std::string(m.help) + "\n"));
    EXPECT_THAT(
        text, HasSubstr("# TYPE " + name + (m.type == Type::counter ? " counter\n" : " gauge\n")));
  }
  EXPECT_EQ(shown.size(), expected.size());
}

TEST(Exposition, HasTheFiguresOfTheRecords) {
  Book book;
  feed(book, "sgd", small_run());
  const std::string text = book.text();
  for (const char* line : {
           "orrery_run_state{run=\"sgd\",state=\"finished\"} 1",
           "orrery_run_state{run=\"sgd\",state=\"running\"} 0",
           "orrery_run_info{run=\"sgd\",seed=\"7\",strategy=\"sgd_allreduce\"} 1",
           "orrery_emulated_seconds{run=\"sgd\"} 0.006",
           "orrery_host_seconds{run=\"sgd\"} 1.5",
           "orrery_test_accuracy_ratio{run=\"sgd\"} 0.625",
           "orrery_loss{node=\"a\",phase=\"step\",run=\"sgd\"} 2.25",
           "orrery_steps_total{node=\"b\",phase=\"step\",run=\"sgd\"} 2",
           "orrery_samples_total{node=\"b\",run=\"sgd\"} 128",
           "orrery_device_busy_seconds_total{node=\"b\",run=\"sgd\"} 0.002",
           "orrery_sent_bytes_total{kind=\"gradient\",node=\"a\",peer=\"b\",run=\"sgd\"} 8192",
           "orrery_link_bytes_total{link=\"a->switch\",run=\"sgd\"} 15140",
           "orrery_link_dropped_packets_total{link=\"a->switch\",run=\"sgd\"} 1",
           "orrery_timeline_event_active{event=\"slow b\",run=\"sgd\",target=\"b\"} 0",
       })
    EXPECT_THAT(text, HasSubstr(std::string(line) + "\n"));
}

TEST(Exposition, WaitsForTheNamesOfTheNodes) {
  Book book;
  feed(book, "r", {step(5, 1, 1, "step", 0.5, 3)});
  EXPECT_THAT(book.text(), Not(HasSubstr("orrery_samples_total{")));
  feed(book, "r2", {step(5, 1, 1, "step", 0.5, 3), started("r2", "s", {"a", "b"})});
  EXPECT_THAT(book.text(), HasSubstr("orrery_samples_total{node=\"b\",run=\"r2\"} 3\n"));
}

TEST(Exposition, KeepsRunsOfASuiteApart) {
  Book book;
  feed(book, "one", {started("one", "s", {"a"}), heartbeat(2'000'000'000)});
  feed(book, "two", {started("two", "s", {"a"}), ended(5, false, "x")});
  EXPECT_THAT(book.text(), HasSubstr("orrery_emulated_seconds{run=\"one\"} 2\n"));
  EXPECT_THAT(book.text(), HasSubstr("orrery_run_state{run=\"two\",state=\"failed\"} 1\n"));
  EXPECT_THAT(book.text(), HasSubstr("orrery_run_state{run=\"one\",state=\"running\"} 1\n"));
}

TEST(Exposition, EscapesHostileNames) {
  Book book;
  feed(book, "a\"b\n\\c", {started("x", "s", {"a"})});
  EXPECT_THAT(book.text(), HasSubstr("run=\"a\\\"b\\n\\\\c\""));
}

TEST(Exposition, ACounterNeverFalls) {
  Book book;
  feed(book, "r",
       {started("r", "s", {}), counters(1, "l", 5, 500, 0), counters(2, "l", 4, 400, 0)});
  EXPECT_THAT(book.text(), HasSubstr("orrery_link_bytes_total{link=\"l\",run=\"r\"} 500\n"));
}

TEST(Exporter, ServesTheBook) {
  Book book;
  const Exporter exporter(book, "127.0.0.1:0");
  feed(book, "sgd", small_run());
  EXPECT_THAT(get(exporter.port()), HasSubstr("orrery_emulated_seconds{run=\"sgd\"} 0.006"));
}

std::string refusal(const std::string& address, ExitCode code) {
  const Book book;
  try {
    const Exporter exporter(book, address);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  return "no error";
}

TEST(Exporter, SaysWhatIsWrongWithAnAddress) {
  EXPECT_EQ(refusal("localhost", ExitCode::usage),
            "metrics address \"localhost\": \"localhost\" is no port from 0 to 65535; write "
            "HOST:PORT, as in 127.0.0.1:9464, or :9464 for every interface");
  EXPECT_THAT(refusal("127.0.0.1:", ExitCode::usage), HasSubstr("the port is missing"));
  EXPECT_THAT(refusal(":70000", ExitCode::usage), HasSubstr("\"70000\" is no port"));
  EXPECT_THAT(
      refusal("192.0.2.1:0", ExitCode::machine_lacks),
      HasSubstr("cannot serve metrics at \"192.0.2.1:0\": Cannot assign requested address"));
}

TEST(Exporter, SaysThatAPortIsTaken) {
  const Book book;
  const Exporter first(book, "127.0.0.1:0");
  EXPECT_THAT(refusal("127.0.0.1:" + std::to_string(first.port()), ExitCode::machine_lacks),
              HasSubstr("Address already in use; choose another address or port"));
}

}  // namespace
}  // namespace orrery::metrics
