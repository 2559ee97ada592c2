// The real transport, over loopback: order, content, back-pressure, deadlines, lost peers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "agents/frame.hh"
#include "agents/transport_grpc.hh"

namespace orrery {
namespace {

// Each test has ports of its own: they may run at the same time.
int next_port() {
  static int port = 20000 + static_cast<int>(::getpid()) % 20000;
  return port++;
}

struct Peer {
  MonotonicClock clock;
  std::unique_ptr<GrpcTransport> transport;
};

// `n` nodes in this process, each connected to each other.
std::vector<Peer> cluster(int n) {
  TransportOptions options;
  options.port = next_port();
  for (int i = 0; i < n; ++i) options.addresses.push_back("127.0.0." + std::to_string(i + 1));
  std::vector<Peer> peers(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) {
    options.rank = i;
    Peer& peer = peers[static_cast<std::size_t>(i)];
    peer.transport = std::make_unique<GrpcTransport>(options, peer.clock);
    peer.transport->listen();
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i)
    threads.emplace_back([&, i] {
      std::vector<int> others;
      for (int j = 0; j < n; ++j)
        if (j != i) others.push_back(j);
      peers[static_cast<std::size_t>(i)].transport->connect(others);
    });
  for (std::thread& thread : threads) thread.join();
  return peers;
}

Tensor counting(std::int64_t count) {
  Tensor tensor({count});
  std::iota(tensor.values().begin(), tensor.values().end(), 0.0f);
  return tensor;
}

TEST(Frame, CarriesEverything) {
  const Message sent{MessageKind::gradient,
                     77,
                     std::string("he\0ad", 5),
                     {counting(3), Tensor({0}), counting(100000).view(5, {4, 7})}};
  const Received got = from_wire(to_wire(3, sent));
  EXPECT_EQ(got.from, 3);
  EXPECT_EQ(got.message.kind, MessageKind::gradient);
  EXPECT_EQ(got.message.tag, 77u);
  EXPECT_EQ(got.message.header, sent.header);
  ASSERT_EQ(got.message.tensors.size(), 3u);
  EXPECT_EQ(got.message.tensors[1].count(), 0);
  EXPECT_THAT(got.message.tensors[2].shape(), testing::ElementsAre(4, 7));
  EXPECT_EQ(got.message.tensors[2].data()[27], 32.0f);
}

TEST(Frame, LargeTensorsAreNotCopied) {
  const Tensor tensor = counting(100000);
  const long owners = tensor.storage().use_count();
  const grpc::ByteBuffer buffer = to_wire(0, {MessageKind::gradient, 1, {}, {tensor}});
  EXPECT_EQ(tensor.storage().use_count(), owners + 1);
}

TEST(Frame, RefusesWhatIsNone) {
  const std::string junk = "\xff\xff\xff\x7fjunk";
  const grpc::Slice slice(junk);
  EXPECT_THROW(from_wire(grpc::ByteBuffer(&slice, 1)), Error);
  EXPECT_THROW(from_wire(grpc::ByteBuffer(&slice, 0)), Error);
}

TEST(Transport, KeepsOrderAndContent) {
  auto peers = cluster(2);
  for (int i = 0; i < 200; ++i)
    peers[0].transport->send(1, {MessageKind::scalar, 5, std::to_string(i), {counting(i * 100)}});
  for (int i = 0; i < 200; ++i) {
    const Message message = peers[1].transport->recv({0, 5});
    ASSERT_EQ(message.header, std::to_string(i));
    ASSERT_EQ(message.tensors.at(0).count(), i * 100);
    if (i > 0) {
      ASSERT_EQ(message.tensors[0].data()[i * 100 - 1], static_cast<float>(i * 100 - 1));
    }
  }
}

TEST(Transport, TagsAreSeparate) {
  auto peers = cluster(2);
  peers[0].transport->send(1, {MessageKind::scalar, 1, "one", {}});
  peers[0].transport->send(1, {MessageKind::scalar, 2, "two", {}});
  EXPECT_EQ(peers[1].transport->recv({0, 2}).header, "two");
  EXPECT_EQ(peers[1].transport->recv({0, 1}).header, "one");
  EXPECT_FALSE(peers[1].transport->try_recv({0, 1}));
}

TEST(Transport, BothWaysAtOnceWithMoreThanTheSocketsHold) {
  auto peers = cluster(2);
  const Tensor big = counting(8 << 20);  // 32 MiB
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      auto& transport = *peers[static_cast<std::size_t>(i)].transport;
      for (int k = 0; k < 3; ++k) transport.send(1 - i, {MessageKind::gradient, 1, {}, {big}});
      for (int k = 0; k < 3; ++k) {
        const Message message = transport.recv({1 - i, 1});
        EXPECT_EQ(message.tensors.at(0).data()[(8 << 20) - 1], big.data()[(8 << 20) - 1]);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Transport, WaitsForTheFirstOfSeveral) {
  auto peers = cluster(3);
  peers[2].transport->send(0, {MessageKind::scalar, 9, "from 2", {}});
  const std::vector<Source> sources{{1, 9}, {2, 9}};
  EXPECT_EQ(peers[0].transport->wait_any(sources, std::nullopt), 1);
  EXPECT_EQ(peers[0].transport->try_recv({2, 9})->header, "from 2");
}

TEST(Transport, DeadlinePasses) {
  auto peers = cluster(2);
  const Source source{1, 1};
  const Instant deadline = peers[0].clock.now() + Duration::milliseconds(30);
  EXPECT_EQ(peers[0].transport->wait_any({&source, 1}, deadline), -1);
  EXPECT_GE(peers[0].clock.now(), deadline);
}

TEST(Transport, CountsByPeerAndKind) {
  auto peers = cluster(2);
  peers[0].transport->send(1, {MessageKind::gradient, 1, "abcd", {counting(10)}});
  peers[0].transport->send(1, {MessageKind::gradient, 1, "", {counting(1)}});
  peers[0].transport->send(1, {MessageKind::scalar, 1, "x", {}});
  const auto& sent = peers[0].transport->sent();
  EXPECT_EQ(sent.at({1, MessageKind::gradient}).messages, 2);
  EXPECT_EQ(sent.at({1, MessageKind::gradient}).bytes, 4 + 40 + 4);
  EXPECT_EQ(sent.at({1, MessageKind::scalar}).bytes, 1);
}

TEST(Transport, WhatWasSentBeforeClosingArrives) {
  auto peers = cluster(2);
  peers[0].transport->send(1, {MessageKind::gradient, 1, "last", {counting(1 << 20)}});
  std::thread other([&] { peers[1].transport->close(); });
  peers[0].transport->close();
  other.join();
  EXPECT_EQ(peers[1].transport->recv({0, 1}).header, "last");
}

TEST(Transport, ALostPeerIsNoticedByWhoWaits) {
  auto peers = cluster(3);
  std::thread dies([&] { peers[2].transport.reset(); });
  const Source source{2, 1};
  try {
    peers[0].transport->wait_any({&source, 1}, std::nullopt);
    FAIL() << "nothing was thrown";
  } catch (const PeerLost& lost) {
    EXPECT_EQ(lost.peer(), 2);
    EXPECT_THAT(lost.what(), testing::HasSubstr("node 2"));
  }
  dies.join();
  // Others go on.
  peers[1].transport->send(0, {MessageKind::scalar, 1, "here", {}});
  EXPECT_EQ(peers[0].transport->recv({1, 1}).header, "here");
}

TEST(Transport, SendingToALostPeerThrows) {
  auto peers = cluster(2);
  peers[1].transport.reset();
  const Source source{1, 1};
  EXPECT_THROW(peers[0].transport->wait_any({&source, 1}, std::nullopt), PeerLost);
  EXPECT_THROW(peers[0].transport->send(1, {MessageKind::scalar, 1, "x", {}}), PeerLost);
}

TEST(Transport, APeerThatComesBackIsHeardAgain) {
  TransportOptions options;
  options.port = next_port();
  options.addresses = {"127.0.0.1", "127.0.0.2"};
  MonotonicClock clock;
  GrpcTransport server(options, clock);
  server.listen();
  options.rank = 1;
  for (int life = 0; life < 2; ++life) {
    GrpcTransport worker(options, clock);
    worker.listen();
    worker.connect({0});
    worker.send(0, {MessageKind::control, 1, "life " + std::to_string(life), {}});
    EXPECT_EQ(server.recv({1, 1}).header, "life " + std::to_string(life));
    if (life == 0)
      server.connect({1});
    else
      server.reconnect(1);
    server.send(1, {MessageKind::control, 2, "welcome", {}});
    EXPECT_EQ(worker.recv({0, 2}).header, "welcome");
    server.forgive(1);
  }
}

TEST(Transport, NobodyListens) {
  TransportOptions options;
  options.port = next_port();
  options.addresses = {"127.0.0.1", "127.0.0.2"};
  MonotonicClock clock;
  GrpcTransport alone(options, clock);
  alone.listen();
  EXPECT_THROW(alone.connect({1}), PeerLost);
}

TEST(Transport, AddressInUseIsNamed) {
  TransportOptions options;
  options.port = next_port();
  options.addresses = {"127.0.0.1"};
  MonotonicClock clock;
  GrpcTransport first(options, clock), second(options, clock);
  first.listen();
  try {
    second.listen();
    FAIL() << "nothing was thrown";
  } catch (const SystemError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("127.0.0.1:" + std::to_string(options.port)));
  }
}

}  // namespace
}  // namespace orrery
