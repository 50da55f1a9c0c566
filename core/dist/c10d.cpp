// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/dist/c10d.h"

#include "core/base/error.h"
#include "core/base/plugin.h"
#include "core/base/words.h"
#include "core/dist/nccl/library.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef USE_C10D_GLOO
// What LibTorch's header wants of Gloo's, which are not in its packages: names of what it holds pointers to.
// The objects are made and destroyed within LibTorch.
namespace gloo {
class Context {
public:
    void setTimeout(std::chrono::milliseconds timeout);
};
namespace rendezvous {
class Store {
public:
    virtual ~Store() = default;
    virtual void set(const std::string& key, const std::vector<char>& value) = 0;
    virtual std::vector<char> get(const std::string& key) = 0;
    virtual void wait(const std::vector<std::string>& keys) = 0;
    virtual void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) = 0;
};
} // namespace rendezvous
namespace transport {
class Device;
class UnboundBuffer {
public:
    virtual ~UnboundBuffer() = default;
};
} // namespace transport
} // namespace gloo
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif
#include <ATen/ops/from_blob.h>
#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace ponderscope {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Between two calls: an evaluation of rank 0, while the others wait for the next step.
constexpr std::chrono::hours patience{12};

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

/// The first line of what LibTorch says, without its stack.
std::string short_reason(const std::exception& error) {
    std::string_view said = error.what();
    if (const auto* torch = dynamic_cast<const c10::Error*>(&error)) {
        said = torch->what_without_backtrace();
    }
    said = said.substr(0, said.find('\n'));
    return std::string(said.substr(0, 160));
}

[[noreturn]] void broken(const std::exception& error) {
    throw EnvironmentError(
        "The connection to the other processes broke: one of them ended, see what it said (" +
        short_reason(error) + ").");
}

std::uint16_t port_of(const std::string& text) {
    const std::uint16_t port = parse_number<std::uint16_t>(text).value_or(0);
    if (port == 0) {
        throw InputError("The environment variable MASTER_PORT: expected a port from 1 to 65535, found \"" +
                         text.substr(0, 40) + "\".");
    }
    return port;
}

/// A socket that is bound to the port, for the loopback alone where that is the address: what nobody else
/// needs to reach is not open to others.
int bound_socket(const std::string& host, const std::string& port) {
    ::addrinfo wanted{};
    wanted.ai_family = AF_INET;
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_PASSIVE;
    const bool loopback = host == "localhost" || host.starts_with("127.");
    ::addrinfo* found = nullptr;
    if (const int code = ::getaddrinfo(loopback ? host.c_str() : nullptr, port.c_str(), &wanted, &found);
        code != 0) {
        throw InputError("MASTER_ADDR " + host + ": the address cannot be found (" + ::gai_strerror(code) +
                         ").");
    }
    const int made = ::socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol);
    const int yes = 1;
    ::setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    // Listening at once: an address that another one listens at is refused there and not before.
    const bool bound =
        made >= 0 && ::bind(made, found->ai_addr, found->ai_addrlen) == 0 && ::listen(made, SOMAXCONN) == 0;
    const int code = errno;
    ::freeaddrinfo(found);
    if (!bound) {
        ::close(made);
        throw InputError("MASTER_PORT " + port + " of " + host + ": " +
                         (code == EADDRINUSE ? "the port is in use; choose another one for all processes."
                                             : std::string(std::strerror(code)) + "."));
    }
    return made;
}

class C10d final : public Collectives {
public:
    C10d(const World& world, std::chrono::seconds timeout)
        : world_(world), timeout_(timeout), host_(variable("MASTER_ADDR")), port_(variable("MASTER_PORT")) {
        if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) {
            FLAGS_caffe2_log_level = 3; // what goes wrong is thrown as well
        }
        c10d::TCPStoreOptions options;
        options.port = port_of(port_);
        options.timeout = timeout;
        options.waitWorkers = false;
        holds_store_ = world.rank == 0 && variable("TORCHELASTIC_USE_AGENT_STORE") != "True";
        if (holds_store_) {
            options.isServer = true;
            options.masterListenFd = bound_socket(host_, port_);
        }
        c10::intrusive_ptr<c10d::Store> store;
        try {
            store = c10::make_intrusive<c10d::TCPStore>(host_, options);
        } catch (const std::exception& error) {
            throw EnvironmentError("Rank 0 did not come within " + std::to_string(timeout.count()) +
                                   " s: nobody answers at " + host_ + ":" + port_ + " (" +
                                   short_reason(error) + ").");
        }
        // torchrun keeps its store when it starts the processes anew.
        store_ = c10::make_intrusive<c10d::PrefixStore>("ponderscope/" + variable("TORCHELASTIC_RUN_ID") +
                                                            "/" + variable("TORCHELASTIC_RESTART_COUNT"),
                                                        std::move(store));
        store_->setTimeout(timeout);
        said_within("here", "", timeout);
    }

    void use(c10::intrusive_ptr<c10d::Backend> backend, std::string backend_name, std::int64_t gpu) {
        backend_ = std::move(backend);
        backend_name_ = std::move(backend_name);
        device_ = gpu < 0 ? at::Device(at::kCPU) : at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(gpu));
    }
    [[nodiscard]] const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }
    [[nodiscard]] const std::string& host() const { return host_; }

    [[nodiscard]] std::string name() const override {
        return "c10d" + (backend_name_.empty() ? "" : " with " + backend_name_) + " at " + host_ + ":" +
               port_;
    }
    [[nodiscard]] bool on_gpu() const override { return device_.is_cuda(); }

    std::unique_ptr<Pending> begin_sum(Numbers numbers) override {
        try {
            std::vector<at::Tensor> tensors{tensor_of(numbers)};
            return std::make_unique<Later>(backend_->allreduce(tensors));
        } catch (const std::exception& error) {
            broken(error);
        }
    }
    void broadcast(Numbers numbers) override {
        try {
            std::vector<at::Tensor> tensors{tensor_of(numbers)};
            backend_->broadcast(tensors)->wait();
        } catch (const std::exception& error) {
            broken(error);
        }
    }
    std::vector<std::string> gather(const std::string& words) override {
        const std::string subject = "words/" + std::to_string(gathered_++);
        if (backend_ && !on_gpu()) {
            // A store does not notice that somebody ended before it spoke; connections do.
            try {
                store_->set(key_of(subject, world_.rank), words);
            } catch (const std::exception& error) {
                broken(error);
            }
            try {
                double nothing = 0;
                sum({&nothing, 1, true});
            } catch (const EnvironmentError&) {
                silent(subject, " ended before all had spoken");
            }
        }
        return said_within(subject, words, patience);
    }
    void leave() override {
        try {
            store_->set("left/" + std::to_string(world_.rank), std::string());
        } catch (const std::exception& error) {
            broken(error);
        }
        // The store goes with the process that holds it: not before all have done with it.
        if (holds_store_) {
            said_within("left", "", std::chrono::duration_cast<milliseconds>(timeout_));
        }
        backend_.reset();
    }

private:
    class Later final : public Pending {
    public:
        explicit Later(c10::intrusive_ptr<c10d::Work> work) : work_(std::move(work)) {}
        void wait() override {
            try {
                work_->wait();
            } catch (const std::exception& error) {
                broken(error);
            }
        }

    private:
        c10::intrusive_ptr<c10d::Work> work_;
    };

    [[nodiscard]] at::Tensor tensor_of(const Numbers& numbers) const {
        if (!backend_) {
            throw EnvironmentError(
                "This build's LibTorch has no Gloo, so that c10d cannot sum numbers of CPUs");
        }
        return at::from_blob(
            numbers.data, {numbers.count},
            at::TensorOptions().dtype(numbers.fp64 ? at::kDouble : at::kFloat).device(device_));
    }

    std::vector<std::string> said_within(const std::string& subject, const std::string& words,
                                         milliseconds time) {
        const auto key = [&](std::int64_t rank) { return key_of(subject, rank); };
        const auto until = Clock::now() + time;
        std::vector<std::string> said(static_cast<std::size_t>(world_.size));
        try {
            store_->set(key(world_.rank), words);
            for (std::int64_t rank = 0; rank < world_.size; ++rank) {
                const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now());
                if (!store_->check({key(rank)})) {
                    store_->wait({key(rank)}, std::max(left, milliseconds(1)));
                }
                said[static_cast<std::size_t>(rank)] = store_->get_to_str(key(rank));
            }
        } catch (const std::exception& error) {
            if (Clock::now() < until) {
                broken(error);
            }
            silent(subject,
                   " did not come within " +
                       std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s");
        }
        return said;
    }

    static std::string key_of(const std::string& subject, std::int64_t rank) {
        return subject + "/" + std::to_string(rank);
    }

    [[noreturn]] void silent(const std::string& subject, const std::string& what) {
        std::vector<std::int64_t> missing;
        try {
            for (std::int64_t rank = 0; rank < world_.size; ++rank) {
                if (!store_->check({key_of(subject, rank)})) {
                    missing.push_back(rank);
                }
            }
        } catch (const std::exception& error) {
            broken(error);
        }
        if (holds_store_) {
            std::this_thread::sleep_for(std::chrono::seconds(2)); // the others want to look into it, too
        }
        std::string who = missing.empty() ? "a process" : name_ranks(missing);
        who.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(who.front())));
        throw EnvironmentError(who + " of " + std::to_string(world_.size) + what +
                               "; see whether it was started and what it said.");
    }

    World world_;
    std::chrono::seconds timeout_;
    std::string host_, port_;
    bool holds_store_ = false;
    c10::intrusive_ptr<c10d::Store> store_;
    c10::intrusive_ptr<c10d::Backend> backend_;
    std::string backend_name_;
    at::Device device_{at::kCPU};
    std::int64_t gathered_ = 0;
};

} // namespace

std::unique_ptr<Collectives> open_c10d(const World& world, const CollectivesRequest& request,
                                       [[maybe_unused]] std::string& why) {
    auto opened = std::make_unique<C10d>(world, request.timeout);
    const auto rank = static_cast<int>(world.rank);
    const auto size = static_cast<int>(world.size);
    try {
#ifdef PONDERSCOPE_HAS_NCCL
        if (request.gpu) {
            void* door = function_of_plugin("libponderscope_nccl.so", open_nccl_name, why);
            if (door == nullptr) {
                why = "NCCL could not be loaded (" + why + ")";
                return nullptr;
            }
            const auto open = reinterpret_cast<decltype(&ponderscope_open_nccl)>(door);
            opened->use(c10::intrusive_ptr<c10d::Backend>::reclaim(
                            open(opened->store().get(), rank, size, static_cast<int>(request.gpu_index),
                                 static_cast<int>(std::chrono::seconds(patience).count()))),
                        "NCCL", request.gpu_index);
            return opened;
        }
#endif
#ifdef USE_C10D_GLOO
        using Gloo = c10d::ProcessGroupGloo;
        // Gloo writes to a process that has ended without asking for no signal: its error is what names that
        // process.
        std::signal(SIGPIPE, SIG_IGN);
        auto options = Gloo::Options::create(std::chrono::duration_cast<milliseconds>(request.timeout));
        const std::string& host = opened->host();
        const bool loopback = host == "localhost" || host.starts_with("127.");
        options->devices.push_back(loopback ? Gloo::createDeviceForHostname("127.0.0.1")
                                            : Gloo::createDefaultDevice());
        auto gloo = c10::make_intrusive<Gloo>(opened->store(), rank, size, options);
        gloo->setTimeout(std::chrono::duration_cast<milliseconds>(patience)); // all have come
        opened->use(std::move(gloo), "Gloo", -1);
#endif
    } catch (const std::exception& error) {
        broken(error);
    }
    return opened;
}

} // namespace ponderscope
