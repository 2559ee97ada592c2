// What ordinary programs take for granted: threads, descriptors of every kind, IPC, scripts.

#include <fcntl.h>
#include <grp.h>
#include <linux/aio_abi.h>
#include <linux/membarrier.h>
#include <mqueue.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include "probe.hh"

namespace orrery::probe {
namespace {

const Registration boot{"boot", [] {}};

const Registration threads{"threads", [] {
                             // Eight threads pass a turn round by mutex and condition variable:
                             // futexes, woken in order.
                             constexpr int kThreads = 8;
                             constexpr int kRounds = 50;
                             std::mutex mutex;
                             std::condition_variable turned;
                             int turn = 0;
                             std::vector<std::thread> ring;
                             for (int me = 0; me < kThreads; ++me) {
                               ring.emplace_back([&, me] {
                                 for (int round = 0; round < kRounds; ++round) {
                                   std::unique_lock lock(mutex);
                                   turned.wait(lock, [&] { return turn % kThreads == me; });
                                   ++turn;
                                   turned.notify_all();
                                 }
                               });
                             }
                             for (auto& thread : ring) thread.join();
                             expect(turn == kThreads * kRounds, "every thread had every turn");
                           }};

const Registration thread_local_memory{
    "thread_memory", [] {
      // A new thread uses the mappings that its process has, the newest ones too.
      for (int i = 0; i < 20; ++i) {
        constexpr std::size_t kSize = 1 << 20;
        auto* const p = static_cast<char*>(
            mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        check(reinterpret_cast<std::intptr_t>(p), "mmap");
        std::memset(p, i, kSize / 2);
        std::thread writer([&] {
          expect(p[0] == i && p[kSize / 2 - 1] == i && p[kSize / 2] == 0,
                 "thread sees the process");
          std::memset(p + kSize / 2, i + 1, kSize / 2);
        });
        writer.join();
        expect(p[kSize / 2] == i + 1 && p[kSize - 1] == i + 1, "process sees the thread");
        check(munmap(p, kSize), "munmap");
      }
    }};

const Registration epoll{"epoll", [] {
                           const int poll = check(epoll_create1(0), "epoll_create1");
                           const int event = check(eventfd(0, EFD_NONBLOCK), "eventfd");
                           epoll_event want{};
                           want.events = EPOLLIN;
                           want.data.fd = event;
                           check(epoll_ctl(poll, EPOLL_CTL_ADD, event, &want), "epoll_ctl");
                           epoll_event got{};
                           expect(epoll_wait(poll, &got, 1, 0) == 0, "nothing to read yet");
                           const std::uint64_t three = 3;
                           check(write(event, &three, sizeof three), "write to the eventfd");
                           expect(epoll_wait(poll, &got, 1, -1) == 1 && got.data.fd == event,
                                  "the eventfd is reported");
                           std::uint64_t value = 0;
                           check(read(event, &value, sizeof value), "read the eventfd");
                           expect(value == 3, "the eventfd counted to 3");
                         }};

const Registration timerfd{
    "timerfd", [] {
      const int fd = check(timerfd_create(CLOCK_MONOTONIC, 0), "timerfd_create");
      itimerspec every_10_ms{};
      every_10_ms.it_interval.tv_nsec = every_10_ms.it_value.tv_nsec = 10'000'000;
      const std::int64_t start = now();
      check(timerfd_settime(fd, 0, &every_10_ms, nullptr), "timerfd_settime");
      std::uint64_t total = 0;
      while (total < 10) {
        std::uint64_t fired = 0;
        check(read(fd, &fired, sizeof fired), "read the timerfd");
        total += fired;
      }
      report("late_ns", now() - start - 100'000'000);
    }};

const Registration signalfd_check{"signalfd", [] {
                                    sigset_t usr1;
                                    sigemptyset(&usr1);
                                    sigaddset(&usr1, SIGUSR1);
                                    check(sigprocmask(SIG_BLOCK, &usr1, nullptr), "sigprocmask");
                                    const int fd = check(signalfd(-1, &usr1, 0), "signalfd");
                                    check(kill(getpid(), SIGUSR1), "kill");
                                    signalfd_siginfo info{};
                                    check(read(fd, &info, sizeof info), "read the signalfd");
                                    expect(info.ssi_signo == SIGUSR1, "SIGUSR1 arrived");
                                  }};

const Registration posix_timer{"posix_timer", [] {
                                 sigset_t alarm;
                                 sigemptyset(&alarm);
                                 sigaddset(&alarm, SIGRTMIN);
                                 check(sigprocmask(SIG_BLOCK, &alarm, nullptr), "sigprocmask");
                                 sigevent how{};
                                 how.sigev_notify = SIGEV_SIGNAL;
                                 how.sigev_signo = SIGRTMIN;
                                 timer_t timer{};
                                 check(timer_create(CLOCK_MONOTONIC, &how, &timer), "timer_create");
                                 itimerspec in_5_ms{};
                                 in_5_ms.it_value.tv_nsec = 5'000'000;
                                 const std::int64_t start = now();
                                 check(timer_settime(timer, 0, &in_5_ms, nullptr), "timer_settime");
                                 int signal = 0;
                                 expect(sigwait(&alarm, &signal) == 0 && signal == SIGRTMIN,
                                        "the timer's signal arrived");
                                 report("late_ns", now() - start - 5'000'000);
                               }};

const Registration ipc{"ipc", [] {
                         const int shm = check(shmget(IPC_PRIVATE, 4096, 0600), "shmget");
                         auto* const p = static_cast<char*>(shmat(shm, nullptr, 0));
                         check(reinterpret_cast<std::intptr_t>(p), "shmat");
                         const int queue = check(msgget(IPC_PRIVATE, 0600), "msgget");
                         mq_attr attributes{};
                         attributes.mq_maxmsg = 1;
                         attributes.mq_msgsize = 8;
                         const mqd_t posix = check(
                             mq_open("/probe", O_CREAT | O_RDWR, 0600, &attributes), "mq_open");
                         struct {
                           long type;
                           std::array<char, 8> text;
                         } message{1, {}};
                         const pid_t child = check(fork(), "fork");
                         if (child == 0) {
                           p[0] = 'x';
                           msgsnd(queue, &message, sizeof message.text, 0);
                           mq_send(posix, "posix", 6, 0);
                           _exit(0);
                         }
                         std::array<char, 8> text{};
                         check(msgrcv(queue, &message, sizeof message.text, 0, 0), "msgrcv");
                         check(mq_receive(posix, text.data(), text.size(), nullptr), "mq_receive");
                         check(waitpid(child, nullptr, 0), "waitpid");
                         expect(p[0] == 'x', "System V shared memory is shared");
                         expect(std::string(text.data()) == "posix", "the message arrived");
                       }};

const Registration aio{
    "aio", [] {
      aio_context_t context = 0;
      check(syscall(SYS_io_setup, 1, &context), "io_setup");
      const int fd = check(open("/mnt/aio", O_CREAT | O_RDWR, 0600), "open");
      std::string text = "asynchronous";
      iocb write_it{};
      write_it.aio_lio_opcode = IOCB_CMD_PWRITE;
      write_it.aio_fildes = static_cast<std::uint32_t>(fd);
      write_it.aio_buf = reinterpret_cast<std::uintptr_t>(text.data());
      write_it.aio_nbytes = text.size();
      iocb* list = &write_it;
      expect(check(syscall(SYS_io_submit, context, 1, &list), "io_submit") == 1, "one submitted");
      io_event done{};
      expect(check(syscall(SYS_io_getevents, context, 1, 1, &done, nullptr), "io_getevents") == 1,
             "one done");
      expect(slurp("/mnt/aio") == text, "the file has the text");
    }};

const Registration misc{
    "system_calls", [] {
      check(syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0), "membarrier");
      const int fd = check(open("/mnt/lock", O_CREAT | O_RDWR, 0600), "open");
      check(flock(fd, LOCK_EX), "flock");
      const int other = check(open("/mnt/lock", O_RDWR), "open again");
      expect(flock(other, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK, "the lock holds");
      check(posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED) == 0 ? 0 : -1, "fadvise");
      const int memory = check(memfd_create("probe", 0), "memfd_create");
      check(ftruncate(memory, 4096), "ftruncate of the memfd");
      check(mkdir("/dev/pts", 0755), "mkdir /dev/pts");
      check(mount("devpts", "/dev/pts", "devpts", 0, nullptr), "mount devpts");
      const int terminal = check(posix_openpt(O_RDWR | O_NOCTTY), "posix_openpt");
      check(unlockpt(terminal), "unlockpt");
      // In a child, for an ordinary user may not switch the guest off.
      const pid_t child = check(fork(), "fork");
      if (child == 0) {
        const bool dropped = setgroups(0, nullptr) == 0 && setuid(1000) == 0 && getuid() == 1000;
        _exit(dropped && setuid(0) == -1 ? 0 : 1);
      }
      int status = -1;
      check(waitpid(child, &status, 0), "waitpid");
      expect(status == 0, "a process can become an ordinary user's");
    }};

const Registration script{"script", [] {
                            std::ofstream("/mnt/script") << "#!/bin/sh\necho \"$0 ran with $1\"\n";
                            check(chmod("/mnt/script", 0755), "chmod");
                            expect(run("/mnt/script it") == "/mnt/script ran with it\n",
                                   "the script ran");
                          }};

const Registration unix_sockets{
    "unix_sockets", [] {
      const int server = check(socket(AF_UNIX, SOCK_STREAM, 0), "socket");
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      std::strcpy(address.sun_path, "/mnt/socket");
      check(bind(server, reinterpret_cast<sockaddr*>(&address), sizeof address), "bind");
      check(listen(server, 1), "listen");
      const int client = check(socket(AF_UNIX, SOCK_STREAM, 0), "socket");
      check(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address), "connect");
      const int accepted = check(accept(server, nullptr, nullptr), "accept");
      std::array<int, 2> pipe_ends{};
      check(pipe(pipe_ends.data()), "pipe");
      // A descriptor travels through the socket, as controllers hand them to agents.
      char byte = 'd';
      iovec data{&byte, 1};
      alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
      msghdr message{};
      message.msg_iov = &data;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &pipe_ends[1], sizeof(int));
      check(sendmsg(client, &message, 0), "sendmsg");
      check(recvmsg(accepted, &message, 0), "recvmsg");
      int passed = -1;
      std::memcpy(&passed, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
      check(write(passed, "y", 1), "write to the passed descriptor");
      check(read(pipe_ends[0], &byte, 1), "read the pipe");
      expect(byte == 'y', "the byte came through the pipe");
    }};

// Never ends by itself: some processes that make one call after another, one that waits.
const Registration killed{"kill", [] {
                            for (int i = 0; i < 4; ++i)
                              if (check(fork(), "fork") == 0)
                                for (;;) syscall(SYS_getppid);
                            report("running", 4);
                            for (;;) pause();
                          }};

}  // namespace
}  // namespace orrery::probe
