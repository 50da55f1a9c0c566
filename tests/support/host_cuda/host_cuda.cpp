// SPDX-License-Identifier: GPL-3.0-or-later
// Compiled without sanitizers, which would take switches of stacks for bugs; it tells them about these
// itself.
#include "tests/support/host_cuda/host_cuda.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

// There in a build with that sanitizer, else null.
extern "C" {
[[gnu::weak]] void* __tsan_get_current_fiber();
[[gnu::weak]] void* __tsan_create_fiber(unsigned flags);
[[gnu::weak]] void __tsan_switch_to_fiber(void* fiber, unsigned flags);
[[gnu::weak]] void __tsan_acquire(void* address);
[[gnu::weak]] void __tsan_release(void* address);
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom, std::size_t size);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* fake_stack, const void** bottom, std::size_t* size);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* address, std::size_t size);
// Of the section that __shared__ variables are in, by the linker; null where no kernel has any.
[[gnu::weak]] extern char __start_host_cuda_shared[];
[[gnu::weak]] extern char __stop_host_cuda_shared[];
}

namespace host_cuda {

namespace {

constexpr std::size_t stack_size = 128 * 1024;
constexpr std::size_t guard_size = 64 * 1024;
constexpr unsigned warp_size = 32;
constexpr unsigned without_order = 1; // a switch says nothing about what happened before what

// A place to run: the host's own, or a fibre's. switch_stacks saves `from` and goes on where `to` was saved.
#if defined(__x86_64__)
using Context = void*;

extern "C" void host_cuda_switch(Context* from, Context to);
asm(R"(
    .text
    .type host_cuda_switch, @function
host_cuda_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    retq
    .size host_cuda_switch, .-host_cuda_switch
)");

void make_context(Context& context, char* stack, void (*entry)()) {
    auto** top = reinterpret_cast<void**>(stack + stack_size) - 8;
    std::fill_n(top, 8, nullptr); // six registers, the address to return to, and the alignment of a call
    top[6] = reinterpret_cast<void*>(entry);
    context = top;
}

void switch_stacks(Context& from, Context& to) {
    host_cuda_switch(&from, to);
}
#else
using Context = ucontext_t;

void make_context(Context& context, char* stack, void (*entry)()) {
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = stack_size;
    makecontext(&context, entry, 0);
}

void switch_stacks(Context& from, Context& to) {
    swapcontext(&from, &to);
}
#endif

/// An order of memory between those that have come to it and those that go on from it. Two, in turn: one that
/// goes on from a barrier must not be ordered behind one that has already come to the next.
struct Token {
    char places[2] = {};
    unsigned turn = 0;
};

void acquire(char& place) {
    if (__tsan_acquire != nullptr) {
        __tsan_acquire(&place);
    }
}

void release(char& place) {
    if (__tsan_release != nullptr) {
        __tsan_release(&place);
    }
}

enum class State { ready, at_block_barrier, at_warp_barrier, at_exchange, done };

struct Fibre {
    Context context{};
    char* stack = nullptr;
    void* tsan = nullptr;
    State state = State::done;
    uint3 place;        ///< of its thread in the block
    unsigned lanes = 0; ///< that take part in the warp barrier or exchange
    int source = 0;
    std::uint64_t given = 0;
    std::uint64_t taken = 0;
    std::uint64_t* all = nullptr; ///< where the values of all lanes go, in place of the source's
};

struct Runtime {
    Order order = Order::forward;
    std::mt19937_64 random;
    std::vector<std::unique_ptr<Fibre>> fibres;
    Fibre host;
    const void* host_stack = nullptr;
    std::size_t host_stack_size = 0;
    Fibre* running = nullptr;
    unsigned count = 0; ///< threads of a block
    const std::function<void()>* thread = nullptr;
    uint3 block;
    std::uint64_t blocks_run = 0;
    std::int64_t launches = 0;
    Token start, end, block_barrier;
    std::vector<Token> warp_barriers;
    int error = 0;
    std::string text;
    std::function<void(std::function<void()>)> listener;
};

Runtime& runtime() {
    static Runtime instance;
    return instance;
}

void fail(int error, std::string text) {
    auto& r = runtime();
    if (r.error == 0) {
        r.error = error;
        r.text = std::move(text);
    }
}

void switch_to(Fibre& from, Fibre& to) {
    auto& r = runtime();
    r.running = &to;
    if (__tsan_switch_to_fiber != nullptr) {
        __tsan_switch_to_fiber(to.tsan, without_order);
    }
    void* fake_stack = nullptr;
    if (__sanitizer_start_switch_fiber != nullptr) {
        __sanitizer_start_switch_fiber(&fake_stack, to.stack != nullptr ? to.stack : r.host_stack,
                                       to.stack != nullptr ? stack_size : r.host_stack_size);
    }
    switch_stacks(from.context, to.context);
    if (__sanitizer_finish_switch_fiber != nullptr) {
        __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
    }
}

/// Back to the scheduler, until what `state` waits for is there.
void wait(State state) {
    auto& r = runtime();
    r.running->state = state;
    switch_to(*r.running, r.host);
}

void run_fibre() {
    auto& r = runtime();
    if (__sanitizer_finish_switch_fiber != nullptr) {
        __sanitizer_finish_switch_fiber(nullptr, &r.host_stack, &r.host_stack_size);
    }
    for (;;) {
        acquire(r.start.places[0]);
        (*r.thread)();
        release(r.end.places[0]);
        wait(State::done);
    }
}

void prepare(Fibre& fibre) {
    if (fibre.stack == nullptr) {
        void* memory = mmap(nullptr, guard_size + stack_size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED || mprotect(memory, guard_size, PROT_NONE) != 0) {
            std::perror("host_cuda: a stack");
            std::abort();
        }
        fibre.stack = static_cast<char*>(memory) + guard_size;
    }
    if (__asan_unpoison_memory_region != nullptr) {
        __asan_unpoison_memory_region(fibre.stack, stack_size);
    }
    if (__tsan_create_fiber != nullptr && fibre.tsan == nullptr) {
        fibre.tsan = __tsan_create_fiber(0);
    }
    make_context(fibre.context, fibre.stack, run_fibre);
    fibre.state = State::done;
}

/// Numbers that no kernel expects, others in every second block: each byte of a float makes it NaN, or large.
void spoil_shared_memory() {
    const unsigned char byte = runtime().blocks_run % 2 == 0 ? 0xff : 0x7b;
    for (volatile char* at = __start_host_cuda_shared; at != __stop_host_cuda_shared; ++at) {
        *at = static_cast<char>(byte);
    }
}

std::string name_of(unsigned index) {
    const auto& block = runtime().block;
    return "thread " + std::to_string(index) + " of block (" + std::to_string(block.x) + ", " +
           std::to_string(block.y) + ", " + std::to_string(block.z) + ")";
}

/// Lets those lanes of a warp go on that wait for each other and have all come.
void meet_warp(unsigned warp) {
    auto& r = runtime();
    const auto lane = [&](unsigned index) -> Fibre& { return *r.fibres[warp * warp_size + index]; };
    for (unsigned first = 0; first < warp_size; ++first) {
        const State state = lane(first).state;
        const unsigned lanes = lane(first).lanes;
        if (state != State::at_warp_barrier && state != State::at_exchange) {
            continue;
        }
        bool complete = (lanes >> first & 1) != 0;
        for (unsigned i = 0; i < warp_size && complete; ++i) {
            complete = (lanes >> i & 1) == 0 || (lane(i).state == state && lane(i).lanes == lanes);
        }
        for (unsigned i = 0; i < warp_size && complete; ++i) {
            if ((lanes >> i & 1) == 0) {
                continue;
            }
            if (state == State::at_exchange && lane(i).all != nullptr) {
                for (unsigned from = 0; from < warp_size; ++from) {
                    lane(i).all[from] = (lanes >> from & 1) != 0 ? lane(from).given : 0;
                }
            } else if (state == State::at_exchange) {
                const auto source = static_cast<unsigned>(lane(i).source);
                if (source >= warp_size || (lanes >> source & 1) == 0) {
                    fail(719, name_of(warp * warp_size + i) + " shuffles with a lane that takes no part");
                    return;
                }
                lane(i).taken = lane(source).given;
            }
            lane(i).state = State::ready;
        }
        if (complete && state == State::at_warp_barrier) {
            ++r.warp_barriers[warp].turn;
        }
    }
}

/// Lets the threads of a block go on that wait for what has come about. False: nothing has.
bool meet() {
    auto& r = runtime();
    const auto at_barrier = [](const auto& fibre) { return fibre->state == State::at_block_barrier; };
    if (std::all_of(r.fibres.begin(), r.fibres.begin() + r.count, at_barrier)) {
        ++r.block_barrier.turn;
        for (unsigned i = 0; i < r.count; ++i) {
            r.fibres[i]->state = State::ready;
        }
        return true;
    }
    bool any = false;
    for (unsigned warp = 0; warp < r.count / warp_size; ++warp) {
        meet_warp(warp);
        for (unsigned i = 0; i < warp_size; ++i) {
            any = any || r.fibres[warp * warp_size + i]->state == State::ready;
        }
    }
    return any && r.error == 0;
}

/// The threads' numbers, as they shall be run in the next round.
void arrange(std::vector<unsigned>& numbers) {
    auto& r = runtime();
    if (r.order == Order::shuffled) {
        std::shuffle(numbers.begin(), numbers.end(), r.random);
    } else if (r.order == Order::backward && std::is_sorted(numbers.begin(), numbers.end())) {
        std::reverse(numbers.begin(), numbers.end());
    }
}

void run_block() {
    auto& r = runtime();
    spoil_shared_memory();
    for (unsigned i = 0; i < r.count; ++i) {
        r.fibres[i]->state = State::ready;
    }
    std::vector<unsigned> numbers(r.count);
    std::iota(numbers.begin(), numbers.end(), 0U);
    release(r.start.places[0]);
    do {
        arrange(numbers);
        // Bit w: warp w rests in this round.
        const std::uint64_t resting = r.order == Order::shuffled ? r.random() & r.random() : 0;
        for (const unsigned index : numbers) {
            Fibre& fibre = *r.fibres[index];
            if (fibre.state == State::ready && (resting >> index / warp_size & 1) == 0) {
                threadIdx = fibre.place;
                switch_to(r.host, fibre);
            }
        }
    } while (meet());
    acquire(r.end.places[0]);
    ++r.blocks_run;
    for (unsigned i = 0; i < r.count; ++i) {
        if (r.fibres[i]->state != State::done) {
            const char* at = r.fibres[i]->state == State::at_block_barrier ? "a barrier that not all threads"
                             : r.fibres[i]->state == State::at_warp_barrier
                                 ? "a warp's barrier that not all lanes"
                                 : "a shuffle that not all lanes";
            fail(719, name_of(i) + " waits at " + at + " come to");
            // Its stack is given up as it is.
            prepare(*r.fibres[i]);
        }
    }
}

} // namespace

void set_order(Order order, std::uint64_t seed) {
    runtime().order = order;
    runtime().random.seed(seed);
}

void hear_launches(std::function<void(std::function<void()>)> listener) {
    runtime().listener = std::move(listener);
}

std::int64_t take_launches() {
    return std::exchange(runtime().launches, 0);
}

void launch(dim3 grid, dim3 block, std::size_t shared, void* stream, const std::function<void()>& thread) {
    auto& r = runtime();
    ++r.launches;
    if (r.listener) {
        r.listener([=] { launch(grid, block, shared, stream, thread); });
    }
    const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
    const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
    if (blocks == 0 || grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535 || threads == 0 ||
        threads > 1024 || threads % warp_size != 0 || shared != 0) {
        fail(9, "invalid configuration argument");
        return;
    }
    if (r.error != 0) {
        return; // as after a failure on a GPU
    }
    r.count = static_cast<unsigned>(threads);
    r.thread = &thread;
    r.warp_barriers.resize(threads / warp_size);
    r.host.tsan = __tsan_get_current_fiber != nullptr ? __tsan_get_current_fiber() : nullptr;
    while (r.fibres.size() < threads) {
        r.fibres.push_back(std::make_unique<Fibre>());
        prepare(*r.fibres.back());
    }
    blockDim = block;
    gridDim = grid;
    for (unsigned i = 0; i < r.count; ++i) {
        r.fibres[i]->place = {i % block.x, i / block.x % block.y, i / block.x / block.y};
    }
    std::vector<std::uint64_t> places(blocks);
    std::iota(places.begin(), places.end(), std::uint64_t{0});
    if (r.order == Order::backward) {
        std::reverse(places.begin(), places.end());
    } else if (r.order == Order::shuffled) {
        std::shuffle(places.begin(), places.end(), r.random);
    }
    for (const std::uint64_t place : places) {
        r.block = {static_cast<unsigned>(place % grid.x), static_cast<unsigned>(place / grid.x % grid.y),
                   static_cast<unsigned>(place / grid.x / grid.y)};
        blockIdx = r.block;
        run_block();
        if (r.error != 0) {
            return;
        }
    }
}

int take_error() {
    return std::exchange(runtime().error, 0);
}

const char* error_text() {
    return runtime().text.c_str();
}

void block_barrier() {
    auto& token = runtime().block_barrier;
    char& place = token.places[token.turn % 2];
    release(place);
    wait(State::at_block_barrier);
    acquire(place);
}

void warp_barrier(unsigned lanes) {
    auto& r = runtime();
    const unsigned index = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    auto& token = r.warp_barriers[index / warp_size];
    char& place = token.places[token.turn % 2];
    r.running->lanes = lanes;
    release(place);
    wait(State::at_warp_barrier);
    acquire(place);
}

void misaligned() {
    fail(716, "misaligned address");
    wait(State::at_block_barrier);
}

std::uint64_t exchange(unsigned lanes, std::uint64_t value, int source) {
    Fibre& fibre = *runtime().running;
    fibre.lanes = lanes;
    fibre.source = source;
    fibre.given = value;
    fibre.all = nullptr;
    wait(State::at_exchange);
    return fibre.taken;
}

void exchange_all(unsigned lanes, std::uint64_t value, std::uint64_t (&all)[32]) {
    Fibre& fibre = *runtime().running;
    fibre.lanes = lanes;
    fibre.given = value;
    fibre.all = all;
    wait(State::at_exchange);
}

} // namespace host_cuda
