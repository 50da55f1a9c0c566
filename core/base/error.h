// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <stdexcept>
#include <stop_token>
#include <string>

namespace ponderscope {

/// The kinds of errors, for programs and tests. error_ids.def has their names and meanings.
enum class ErrorId {
#define PONDERSCOPE_ERROR(area, name, meaning) area##_##name,
#include "core/base/error_ids.def"
#undef PONDERSCOPE_ERROR
};

/// The id as "area.name", for example "trace.locked".
const char* name_of(ErrorId id);

/// Base of all exceptions that this project throws on purpose. what() is one sentence for the user.
class Error : public std::runtime_error {
public:
    Error(ErrorId id, const std::string& sentence) : std::runtime_error(sentence), id_(id) {}
    [[nodiscard]] ErrorId id() const noexcept { return id_; }

private:
    ErrorId id_;
};

/// Wrong use or wrong input: a file, a flag, a value. The command line ends with exit code 2.
class InputError : public Error {
public:
    InputError(ErrorId id, const std::string& sentence) : Error(id, sentence) {}

    /// The message is "PATH: expected EXPECTED, found FOUND; REMEDY." Pass the parts without a full stop.
    InputError(ErrorId id, const std::filesystem::path& path, const std::string& expected,
               const std::string& found, const std::string& remedy);
};

/// An error of the environment: disk full, no permission, out of memory. The command line ends with exit code
/// 2. Finished sequences stay in the trace.
class EnvironmentError : public Error {
public:
    EnvironmentError(ErrorId id, const std::string& sentence) : Error(id, sentence) {}
};

/// A device has too little memory. A smaller batch may fit.
class MemoryExhausted : public EnvironmentError {
public:
    explicit MemoryExhausted(const std::string& sentence)
        : EnvironmentError(ErrorId::environment_memory, sentence) {}
};

/// `ponderscope check` found a fault, or a training diverged. The command line ends with exit code 1.
class CheckFailed : public Error {
public:
    explicit CheckFailed(const std::string& sentence) : Error(ErrorId::check_failed, sentence) {}
};

/// The user cancelled. The command line ends with exit code 130.
class Cancelled : public Error {
public:
    Cancelled() : Error(ErrorId::run_cancelled, "Cancelled.") {}
};

inline void throw_if_stopped(const std::stop_token& stop) {
    if (stop.stop_requested()) {
        throw Cancelled();
    }
}

} // namespace ponderscope
