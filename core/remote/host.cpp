// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/remote/host.h"

#include "core/base/error.h"
#include "core/base/scoped_stop.h"
#include "core/base/utf8.h"
#include "core/remote/transport.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace ponderscope::remote {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Most bytes that a shell may print before the line of the server.
constexpr std::size_t most_greeting = 1 << 18;
constexpr milliseconds longest_pause{15'000};

/// The last line that is not empty, for a message.
std::string last_line(const std::string& text) {
    std::string line;
    std::istringstream lines(text);
    for (std::string one; std::getline(lines, one);) {
        one.resize(one.find_last_not_of("\r .") + 1);
        if (!one.empty()) {
            line = std::move(one);
        }
    }
    constexpr std::size_t most = 300;
    return visible(line.substr(0, most));
}

} // namespace

std::string no_program(const std::string& machine, const std::string& said) {
    return machine + ": expected the program " + settings().program + " there, found none" +
           (said.empty() ? "" : " (" + said + ")") + "; install it there or name it in PONDERSCOPE_REMOTE.";
}

struct Host::Impl {
    struct Call {
        Question question{};
        std::string payload;
        std::function<void(const Answer&)> then; ///< empty: a thread waits in ask()
        std::optional<Answer> answer;
        bool sent = false;
    };

    explicit Impl(Address a) : address(std::move(a)), machine(address.machine()) {
        wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (wake < 0) {
            throw EnvironmentError(
                ErrorId::environment_limit,
                "This program has too many open files; close some, or raise the limit (ulimit -n).");
        }
    }
    ~Impl() {
        {
            const std::lock_guard lock(mutex);
            leaving = true;
            changed.notify_all();
        }
        poke();
        if (thread.joinable()) {
            thread.join();
        }
        ::close(wake);
    }

    void poke() const {
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t put = ::write(wake, &one, sizeof one);
    }

    /// Sends a question. The caller holds the lock. Returns the number of the question.
    std::uint32_t post(Question question, std::string payload, std::function<void(const Answer&)> then) {
        const std::uint32_t id = ++last_id;
        calls.emplace(id, Call{question, std::move(payload), std::move(then), std::nullopt, false});
        if (!thread.joinable()) {
            thread = std::thread([this] { run(); });
        }
        wanted = true;
        poke();
        return id;
    }

    // These functions run in the connection's thread.
    void run();
    void converse(Transport& transport);
    bool greet(Transport& transport, std::string& arrived);
    void answered(Frame frame);
    void fail(const std::string& sentence, bool hopeless);
    void pause(milliseconds time);
    [[nodiscard]] std::string reason(int code, const std::string& arrived, const std::string& errors) const;

    const Address address;
    const std::string machine;
    int wake = -1;

    mutable std::mutex mutex;
    std::condition_variable_any changed;
    std::map<std::uint32_t, Call> calls;
    std::uint32_t last_id = 0;
    State state;
    Clock::time_point cut_at{};
    bool hopeless = false; ///< there was never a connection, or the server is incompatible
    bool wanted = false;   ///< a question arrived after the last failure
    bool leaving = false;
    std::thread thread;
};

std::string Host::Impl::reason(int code, const std::string& arrived, const std::string& errors) const {
    const std::string said = last_line(errors);
    const std::string quoted = said.empty() ? "" : " (" + said + ")";
    if (const std::size_t place = arrived.find(hello); place != std::string::npos) {
        // The server had answered before.
        return machine + ": the connection was cut" + quoted + "; Ponderscope tries again.";
    }
    if (code == 127 || code == 126) {
        return no_program(machine, said);
    }
    if (errors.find("no verb") != std::string::npos) {
        return machine + ": expected a ponderscope that can serve, found an older one" + quoted +
               "; install the version " PONDERSCOPE_VERSION " on that machine.";
    }
    if (code == 255) {
        return machine + ": ssh could not connect" + quoted + "; check that `ssh " + address.host +
               "` works in a terminal without a prompt.";
    }
    const std::string first = last_line(arrived);
    return machine + ": expected an answer from ponderscope, found " +
           (!said.empty()    ? "“" + said + "”"
            : !first.empty() ? "“" + first + "”"
                             : "nothing") +
           " and the exit code " + std::to_string(code) + "; check what `ssh " + address.host + " " +
           settings().program + " --version` prints.";
}

void Host::Impl::fail(const std::string& sentence, bool is_hopeless) {
    const std::lock_guard lock(mutex);
    if (state.fault.empty()) {
        cut_at = Clock::now();
    }
    state.fault = sentence;
    hopeless = is_hopeless;
    wanted = false;
    for (auto& [id, call] : calls) {
        call.sent = false;
    }
    if (hopeless) {
        // Drop the questions of ask_later(). Their callers do not wait, and will ask again.
        std::erase_if(calls, [](const auto& entry) { return entry.second.then != nullptr; });
    }
    changed.notify_all();
}

void Host::Impl::answered(Frame frame) {
    std::function<void(const Answer&)> then;
    const Answer answer{static_cast<Status>(frame.kind), std::move(frame.payload)};
    {
        const std::lock_guard lock(mutex);
        const auto place = calls.find(frame.id);
        if (frame.kind > static_cast<std::uint8_t>(Status::moved)) {
            throw ProtocolFault("an answer of kind " + std::to_string(frame.kind));
        }
        if (place == calls.end()) {
            return; // the caller no longer waits
        }
        if (place->second.then) {
            then = std::move(place->second.then);
            calls.erase(place);
        } else {
            place->second.answer = answer;
            changed.notify_all();
        }
    }
    if (then) {
        then(answer);
    }
}

/// Reads the server's first line; false: there is none. Leaves later bytes in \p arrived.
bool Host::Impl::greet(Transport& transport, std::string& arrived) {
    std::string errors;
    for (;;) {
        const Transport::Ready ready = transport.wait(false, wake, -1);
        if (ready.wake) {
            const std::lock_guard lock(mutex);
            std::uint64_t count = 0;
            [[maybe_unused]] const ssize_t got = ::read(wake, &count, sizeof count);
            if (leaving) {
                return false;
            }
        }
        if (ready.errors) {
            transport.read_errors(errors);
        }
        const bool open = !ready.read || transport.read(arrived);
        const std::size_t place = arrived.find(hello);
        const std::size_t end = place != std::string::npos ? arrived.find('\n', place) : std::string::npos;
        if (end != std::string::npos) {
            const std::string line = arrived.substr(place + hello.size(), end - place - hello.size());
            std::uint32_t theirs = 0;
            const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), theirs);
            if (error != std::errc() || theirs != protocol) {
                const std::string version(stop, line.data() + line.size());
                fail(machine + ": expected a ponderscope that speaks version " + std::to_string(protocol) +
                         " of the protocol (" PONDERSCOPE_VERSION "), found version " +
                         visible(line.substr(0, 40)) + "; install the same version on both machines.",
                     true);
                return false;
            }
            arrived.erase(0, end + 1);
            return true;
        }
        const bool endless = arrived.size() > most_greeting || errors.size() > most_greeting;
        if (!open || endless) {
            if (!endless) {
                // Read the last messages of the process.
                while (transport.wait(false, -1, 200).errors && transport.read_errors(errors)) {
                }
            }
            const int code = endless ? 0 : transport.end();
            fail(endless ? machine + ": expected an answer from ponderscope, found endless output of the "
                                     "login shell; let the shell greet only on terminals."
                         : reason(code, arrived, errors),
                 state.times == 0);
            return false;
        }
    }
}

void Host::Impl::converse(Transport& transport) {
    std::string arrived;
    std::string errors;
    if (!greet(transport, arrived)) {
        return;
    }
    {
        const std::lock_guard lock(mutex);
        state.fault.clear();
        ++state.times;
        changed.notify_all();
    }
    FrameCutter cutter(max_answer);
    std::string going; // bytes that are not yet written
    for (;;) {
        cutter.add(arrived);
        arrived.clear();
        Frame one;
        while (cutter.next(one)) {
            answered(std::move(one));
        }
        {
            const std::lock_guard lock(mutex);
            if (leaving) {
                return;
            }
            for (auto& [id, call] : calls) {
                if (!call.sent && !call.answer) {
                    going += frame(id, static_cast<std::uint8_t>(call.question), call.payload);
                    call.sent = true;
                }
            }
        }
        const Transport::Ready ready = transport.wait(!going.empty(), wake, -1);
        if (ready.wake) {
            std::uint64_t count = 0;
            [[maybe_unused]] const ssize_t got = ::read(wake, &count, sizeof count);
        }
        if (ready.errors) {
            transport.read_errors(errors);
            errors.erase(0, errors.size() - std::min(errors.size(), std::size_t{4096}));
        }
        if ((ready.read && !transport.read(arrived)) || (ready.write && !transport.write(going))) {
            while (transport.wait(false, -1, 100).errors && transport.read_errors(errors)) {
            }
            return fail(reason(transport.end(), std::string(hello), errors), false);
        }
    }
}

void Host::Impl::pause(milliseconds time) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, time, [this] { return leaving; });
}

void Host::Impl::run() {
    // Block SIGPIPE: write() reports a closed pipe.
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    milliseconds wait{0};
    for (;;) {
        {
            std::unique_lock lock(mutex);
            // Do not try again to reach a machine that never answered, until the next question.
            changed.wait(lock, [this] { return leaving || !hopeless || wanted; });
            if (leaving) {
                return;
            }
            hopeless = false;
        }
        const int times = state.times;
        try {
            Transport transport(ssh_command(address, {"serve"}), settings().terminal);
            converse(transport);
        } catch (const ProtocolFault& fault) {
            fail(machine + ": expected answers from ponderscope, found " + fault.what() +
                     "; install the same version on both machines.",
                 true);
        } catch (const Error& error) {
            fail(error.what(), true);
        }
        wait =
            state.times > times ? milliseconds(250) : std::min(2 * wait + milliseconds(250), longest_pause);
        if (!hopeless) {
            pause(wait);
        }
    }
}

Host::Host(const Address& address) : impl_(std::make_unique<Impl>(address)) {}
Host::~Host() = default;

std::shared_ptr<Host> Host::of(const Address& address) {
    static std::mutex mutex;
    static std::map<std::string, std::shared_ptr<Host>> hosts;
    const std::lock_guard lock(mutex);
    std::shared_ptr<Host>& host = hosts[address.machine()];
    if (!host) {
        host = std::make_shared<Host>(address);
    }
    return host;
}

Host::Answer Host::ask(Question question, std::string payload) {
    Impl& impl = *impl_;
    std::unique_lock lock(impl.mutex);
    const std::uint32_t id = impl.post(question, std::move(payload), {});
    const auto patience =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(settings().patience));
    const auto done = [&] {
        return impl.calls.at(id).answer.has_value() || (impl.hopeless && !impl.wanted) || impl.leaving;
    };
    std::optional<Clock::time_point> cut_first; // first loss of the connection during this question
    const auto asked = Clock::now();
    const std::stop_token stop = ScopedStop::current();
    while (!done() && !stop.stop_requested()) {
        const bool cut = !impl.state.fault.empty();
        const auto other = [&] { return done() || impl.state.fault.empty() == cut; };
        if (!cut) {
            impl.changed.wait(lock, stop, other);
        } else {
            // No connection. The wait counts from its loss, or from the question if that came later. Further
            // losses do not extend the wait, because the question may crash the server.
            cut_first = cut_first.value_or(std::max(asked, impl.cut_at));
            const auto until = *cut_first + patience;
            if (!impl.changed.wait_until(lock, stop, until, other) && Clock::now() >= until) {
                break;
            }
        }
    }
    std::optional<Answer> answer = std::move(impl.calls.at(id).answer);
    impl.calls.erase(id);
    if (!answer && stop.stop_requested()) {
        throw Cancelled();
    }
    if (!answer) {
        throw EnvironmentError(ErrorId::remote_connection,
                               impl.state.fault.empty()
                                   ? impl.machine + ": the connection was closed; try again."
                                   : impl.state.fault);
    }
    lock.unlock();
    if (answer->status == Status::wrong_input || answer->status == Status::environment) {
        const std::string sentence = impl.machine + visible(answer->payload.substr(0, 2000));
        if (answer->status == Status::wrong_input) {
            throw InputError(ErrorId::remote_refused, sentence);
        }
        throw EnvironmentError(ErrorId::remote_refused, sentence);
    }
    return std::move(*answer);
}

void Host::ask_later(Question question, std::string payload, std::function<void(const Answer&)> then) {
    const std::lock_guard lock(impl_->mutex);
    impl_->post(question, std::move(payload), std::move(then));
}

Host::State Host::state() const {
    const std::lock_guard lock(impl_->mutex);
    return impl_->state;
}

std::string Host::machine() const {
    return impl_->machine;
}

namespace {

std::optional<struct stat> stat_of(const std::filesystem::path& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 ? std::optional(info) : std::nullopt;
}

std::int64_t time_of(const std::optional<struct stat>& info) {
    return info ? static_cast<std::int64_t>(info->st_mtim.tv_sec) * 1'000'000'000 + info->st_mtim.tv_nsec : 0;
}

Kind kind_of(const std::filesystem::path& path, const struct stat& info) {
    if (S_ISREG(info.st_mode)) {
        return path.extension() == ".ponder" ? Kind::trace : Kind::file;
    }
    std::error_code error;
    return !S_ISDIR(info.st_mode)                                     ? Kind::none
           : std::filesystem::exists(path / "training.ponder", error) ? Kind::training
           : std::filesystem::exists(path / "config.json", error)     ? Kind::checkpoint
                                                                      : Kind::folder;
}

} // namespace

Looked look_here(const std::filesystem::path& path) {
    const auto info = stat_of(path);
    if (!info) {
        return {};
    }
    std::error_code error;
    const std::filesystem::path real = std::filesystem::canonical(path, error);
    const std::string name = error ? path.string() : real.string();
    return {kind_of(path, *info),
            info->st_dev,
            info->st_ino,
            static_cast<std::uint64_t>(info->st_size),
            {time_of(info), time_of(stat_of(name + "-wal")), time_of(stat_of(name + ".annotations"))},
            name};
}

Looked read_looked(const std::string& payload) {
    Unpacker fields(payload);
    Looked looked;
    const std::uint8_t kind = fields.u8();
    if (kind > static_cast<std::uint8_t>(Kind::training)) {
        throw ProtocolFault("an unknown kind of file");
    }
    looked.kind = static_cast<Kind>(kind);
    looked.device = fields.u64();
    looked.inode = fields.u64();
    looked.size = fields.u64();
    for (std::int64_t& time : looked.times) {
        time = fields.i64();
    }
    looked.path = fields.text();
    fields.end();
    return looked;
}

namespace {

/// Asks a question about a path. Returns the result of \p read for the answer. EnvironmentError: the answer
/// breaks the protocol.
template <class Read>
auto ask_about(const std::string& url, Question question, const Read& read) {
    const Address address = parse_address(url);
    const auto host = Host::of(address);
    const Host::Answer answer = host->ask(question, std::move(Packer().text(address.path).data));
    try {
        return read(answer.payload);
    } catch (const ProtocolFault& fault) {
        throw EnvironmentError(ErrorId::remote_connection,
                               host->machine() + ": expected an answer from ponderscope, found " +
                                   fault.what() + "; install the same version on both machines.");
    }
}

} // namespace

Looked look(const std::string& url) {
    return ask_about(url, Question::look, read_looked);
}

std::vector<std::string> list(const std::string& url) {
    return ask_about(url, Question::list, [](const std::string& payload) {
        Unpacker fields(payload);
        const std::uint32_t count = fields.u32();
        if (count > max_entries) {
            throw ProtocolFault("a folder of " + std::to_string(count) + " entries");
        }
        std::vector<std::string> names(count);
        for (std::string& name : names) {
            name = fields.text();
            if (name.empty() || name.find('/') != std::string::npos) {
                throw ProtocolFault("an invalid file name");
            }
        }
        fields.end();
        return names;
    });
}

} // namespace ponderscope::remote
