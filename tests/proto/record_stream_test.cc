#include "proto/record_stream.hh"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.hh"

namespace orrery {
namespace {

class RecordStream : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/orrery-records-XXXXXX";
    folder_ = ::mkdtemp(pattern);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/records.bin"; }

  static wire::Record heartbeat(std::int64_t t) {
    wire::Record record;
    record.mutable_heartbeat()->set_t(t);
    return record;
  }
  static std::vector<std::int64_t> times(RecordFileReader& reader) {
    std::vector<std::int64_t> all;
    reader.poll([&](const wire::Record& record) { all.push_back(record.heartbeat().t()); });
    return all;
  }

  std::string folder_;
};

TEST_F(RecordStream, WhatIsWrittenIsRead) {
  {
    RecordFileWriter writer(path());
    for (int i = 1; i <= 3; ++i) writer.write(heartbeat(i));
  }
  RecordFileReader reader(path());
  EXPECT_EQ(times(reader), (std::vector<std::int64_t>{1, 2, 3}));
}

TEST_F(RecordStream, AGrowingFileIsFollowed) {
  RecordFileReader reader(path());
  EXPECT_TRUE(times(reader).empty());  // it is not there yet
  RecordFileWriter writer(path());
  writer.write(heartbeat(1));
  writer.flush();
  EXPECT_EQ(times(reader), (std::vector<std::int64_t>{1}));
  writer.write(heartbeat(2));
  EXPECT_TRUE(times(reader).empty());  // still in the buffer
  writer.flush();
  EXPECT_EQ(times(reader), (std::vector<std::int64_t>{2}));
}

TEST_F(RecordStream, EveryCutIsReadUpToTheCut) {
  {
    RecordFileWriter writer(path());
    for (int i = 1; i <= 3; ++i) writer.write(heartbeat(1000000 + i));  // of one size
  }
  const std::string whole = read_file(path());
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    write_file(path(), whole.substr(0, length));
    RecordFileReader reader(path());
    const std::size_t read = times(reader).size();
    EXPECT_LE(read, 3u);
    EXPECT_EQ(read == 3, length == whole.size());
    EXPECT_EQ(reader.incomplete_bytes() == 0, length % (whole.size() / 3) == 0);
  }
}

TEST_F(RecordStream, SomethingElseIsRefused) {
  write_file(path(), std::string("\x08hello, world, this is no record", 30));
  RecordFileReader reader(path());
  EXPECT_THROW(times(reader), Error);
}

}  // namespace
}  // namespace orrery
