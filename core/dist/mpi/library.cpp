// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/dist/mpi/library.h"

#include "core/base/error.h"

#include <condition_variable>
#include <deque>
#include <future>
#include <limits>
#include <mutex>
#include <thread>

#include <mpi.h>

namespace ponderscope {
namespace {

using Clock = std::chrono::steady_clock;

void check(int code) {
    if (code != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING];
        int length = 0;
        MPI_Error_string(code, text, &length);
        throw EnvironmentError("MPI: " + std::string(text, static_cast<std::size_t>(length)) +
                               "; another process may have ended, see what it said.");
    }
}

/// Open MPI waits for messages by asking in a loop, which takes the core that a neighbour computes on: ask,
/// and sleep a little.
void finish(MPI_Request request) {
    const auto began = Clock::now();
    for (int done = 0; done == 0;) {
        check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        if (done == 0) {
            const auto waited = Clock::now() - began;
            std::this_thread::sleep_for(waited < std::chrono::milliseconds(5)
                                            ? std::chrono::microseconds(20)
                                            : std::chrono::microseconds(200));
        }
    }
}

MPI_Datatype type_of(const Numbers& numbers) {
    return numbers.fp64 ? MPI_DOUBLE : MPI_FLOAT;
}

/// MPI counts by int.
template <typename Part>
void in_parts(const Numbers& numbers, const Part& part) {
    constexpr std::int64_t most = std::numeric_limits<int>::max() / 16;
    const std::size_t each = numbers.fp64 ? sizeof(double) : sizeof(float);
    for (std::int64_t from = 0; from < numbers.count; from += most) {
        part(static_cast<char*>(numbers.data) + static_cast<std::size_t>(from) * each,
             static_cast<int>(std::min(most, numbers.count - from)));
    }
}

/// Every call of MPI is made by one thread of its own: sums proceed while the caller computes, and MPI needs
/// to know of no other thread.
class Mpi final : public Collectives {
public:
    Mpi() : thread_([this] { speak(); }) {}
    ~Mpi() override {
        if (thread_.joinable()) {
            run([] {}, true);
            thread_.join();
        }
    }
    Mpi(const Mpi&) = delete;
    Mpi& operator=(const Mpi&) = delete;

    /// Nothing: MPI's world is the one of the environment.
    std::string enter(const World& world, std::chrono::seconds timeout) {
        // Shared with a thread that may hang in MPI for longer than this call.
        const auto found = std::make_shared<std::string>();
        auto entered = run([found, world] {
            int level = 0;
            MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
            MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
            int rank = 0;
            int size = 0;
            check(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
            check(MPI_Comm_size(MPI_COMM_WORLD, &size));
            if (rank != world.rank || size != world.size) {
                *found = "MPI found rank " + std::to_string(rank) + " of " + std::to_string(size) +
                         " where " + world.launcher + " says rank " + std::to_string(world.rank) + " of " +
                         std::to_string(world.size) +
                         ": the processes were started by another MPI than Open MPI";
            }
        });
        if (entered.wait_for(timeout) != std::future_status::ready) {
            thread_.detach(); // the program ends by the sentence
            throw EnvironmentError("MPI did not begin within " + std::to_string(timeout.count()) +
                                   " s: not all of the " + std::to_string(world.size) +
                                   " processes came; what mpirun says names those that ended.");
        }
        entered.get();
        size_ = world.size;
        return *found;
    }

    [[nodiscard]] std::string name() const override { return "MPI"; }
    std::unique_ptr<Pending> begin_sum(Numbers numbers) override {
        return std::make_unique<Later>(run([numbers] {
            in_parts(numbers, [&](void* data, int count) {
                MPI_Request request{};
                check(MPI_Iallreduce(MPI_IN_PLACE, data, count, type_of(numbers), MPI_SUM, MPI_COMM_WORLD,
                                     &request));
                finish(request);
            });
        }));
    }
    void broadcast(Numbers numbers) override {
        run([numbers] {
            in_parts(numbers, [&](void* data, int count) {
                MPI_Request request{};
                check(MPI_Ibcast(data, count, type_of(numbers), 0, MPI_COMM_WORLD, &request));
                finish(request);
            });
        }).get();
    }
    std::vector<std::string> gather(const std::string& words) override {
        std::vector<int> lengths(static_cast<std::size_t>(size_));
        std::vector<int> places(lengths.size());
        std::string all;
        run([&] {
            const int length = static_cast<int>(words.size());
            MPI_Request request{};
            check(MPI_Iallgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD, &request));
            finish(request);
            int total = 0;
            for (std::size_t i = 0; i < lengths.size(); ++i) {
                places[i] = total;
                total += lengths[i];
            }
            all.resize(static_cast<std::size_t>(total));
            check(MPI_Iallgatherv(words.data(), length, MPI_CHAR, all.data(), lengths.data(), places.data(),
                                  MPI_CHAR, MPI_COMM_WORLD, &request));
            finish(request);
        }).get();
        std::vector<std::string> said;
        for (std::size_t i = 0; i < lengths.size(); ++i) {
            said.push_back(
                all.substr(static_cast<std::size_t>(places[i]), static_cast<std::size_t>(lengths[i])));
        }
        return said;
    }
    void leave() override {
        run([] { MPI_Finalize(); }).get();
    }

private:
    class Later final : public Pending {
    public:
        explicit Later(std::future<void> done) : done_(std::move(done)) {}
        void wait() override { done_.get(); }

    private:
        std::future<void> done_;
    };

    template <typename Task>
    std::future<void> run(Task task, bool last = false) {
        std::packaged_task<void()> packed(std::move(task));
        auto done = packed.get_future();
        {
            const std::scoped_lock lock(mutex_);
            tasks_.push_back(std::move(packed));
            last_ = last_ || last;
        }
        there_is_work_.notify_one();
        return done;
    }
    void speak() {
        for (;;) {
            std::packaged_task<void()> task;
            bool last = false;
            {
                std::unique_lock lock(mutex_);
                there_is_work_.wait(lock, [this] { return !tasks_.empty(); });
                task = std::move(tasks_.front());
                tasks_.pop_front();
                last = last_ && tasks_.empty();
            }
            task();
            if (last) {
                return;
            }
        }
    }

    std::mutex mutex_;
    std::condition_variable there_is_work_;
    std::deque<std::packaged_task<void()>> tasks_;
    bool last_ = false;
    std::int64_t size_ = 1;
    std::thread thread_; ///< last: it uses the others
};

} // namespace

extern "C" __attribute__((visibility("default"))) Collectives*
ponderscope_open_mpi(const World& world, std::chrono::seconds timeout, std::string& why) {
    // Kept where MPI hangs: its thread uses it until the program ends.
    auto* mpi = new Mpi;
    why = mpi->enter(world, timeout);
    std::unique_ptr<Collectives> opened(mpi);
    return why.empty() ? opened.release() : nullptr;
}

} // namespace ponderscope
