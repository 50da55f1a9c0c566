// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

namespace ponderscope {

/// Base of everything this project throws on purpose. what() is one sentence for a person: no stack, no code
/// names.
class Error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Wrong use or wrong input: a file, a flag, a value. Command lines end with exit code 2.
class InputError : public Error {
public:
    using Error::Error;

    /// "PATH: expected EXPECTED, found FOUND; REMEDY." The parts come without a final stop.
    InputError(const std::filesystem::path& path, const std::string& expected, const std::string& found,
               const std::string& remedy);
};

/// An error of the environment: disk full, no permission, out of memory. Exit code 2; finished sequences
/// stay.
class EnvironmentError : public Error {
public:
    using Error::Error;
};

/// A device has too little memory; a smaller batch may fit.
class MemoryExhausted : public EnvironmentError {
public:
    using EnvironmentError::EnvironmentError;
};

/// A check that ran and failed (check, compare with a bound). Exit code 1.
class CheckFailed : public Error {
public:
    using Error::Error;
};

/// The user cancelled. Exit code 130.
class Cancelled : public Error {
public:
    Cancelled() : Error("Cancelled.") {}
};

} // namespace ponderscope
