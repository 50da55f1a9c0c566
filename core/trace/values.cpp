// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/base/half.h"
#include "core/base/words.h"
#include "core/remote/address.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <type_traits>

namespace ponderscope {
namespace {

static_assert(std::endian::native == std::endian::little, "BLOBs are little-endian and read as they are");

/// Element \p i as a T, from bytes that need not be aligned.
template <class T>
T load(const SignalChunk& chunk, std::size_t i) {
    T value;
    std::memcpy(&value, chunk.data.data() + i * sizeof(T), sizeof(T));
    return value;
}

template <class Result, class T>
std::vector<Result> convert(const SignalChunk& chunk) {
    std::vector<Result> values(chunk.data.size() / sizeof(T));
    if (values.empty()) {
        return values; // an empty vector has no memory to copy to
    }
    if constexpr (std::is_same_v<Result, T>) {
        std::memcpy(values.data(), chunk.data.data(), values.size() * sizeof(T));
    } else {
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] =
                static_cast<Result>(load<T>(chunk, i)); // NOLINT(bugprone-signed-char-misuse): a number
        }
    }
    return values;
}

template <class Decode>
std::vector<float> convert_half(const SignalChunk& chunk, Decode decode) {
    std::vector<float> values(chunk.data.size() / 2);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = decode(load<std::uint16_t>(chunk, i));
    }
    return values;
}

template <class Result>
std::vector<Result> convert_integers(const SignalChunk& chunk) {
    switch (chunk.dtype) {
    case DType::boolean:
    case DType::u8:
        return convert<Result, std::uint8_t>(chunk);
    case DType::i8:
        return convert<Result, std::int8_t>(chunk);
    case DType::u16:
        return convert<Result, std::uint16_t>(chunk);
    case DType::i16:
        return convert<Result, std::int16_t>(chunk);
    case DType::u32:
        return convert<Result, std::uint32_t>(chunk);
    case DType::i32:
        return convert<Result, std::int32_t>(chunk);
    case DType::u64:
        return convert<Result, std::uint64_t>(chunk);
    case DType::i64:
        return convert<Result, std::int64_t>(chunk);
    default:
        throw InputError("expected whole numbers, found a signal of type " +
                         std::string(name_of(chunk.dtype)) + ".");
    }
}

} // namespace

std::vector<float> to_floats(const SignalChunk& chunk) {
    switch (chunk.dtype) {
    case DType::f16:
        return convert_half(chunk, float16_to_float);
    case DType::bf16:
        return convert_half(chunk, bfloat16_to_float);
    case DType::f32:
        return convert<float, float>(chunk);
    case DType::f64:
        return convert<float, double>(chunk);
    default:
        return convert_integers<float>(chunk);
    }
}

std::vector<double> to_doubles(const SignalChunk& chunk) {
    if (chunk.dtype == DType::f64) {
        return convert<double, double>(chunk);
    }
    if (chunk.dtype == DType::f16 || chunk.dtype == DType::bf16 || chunk.dtype == DType::f32) {
        const std::vector<float> values = to_floats(chunk);
        return {values.begin(), values.end()};
    }
    return convert_integers<double>(chunk);
}

std::vector<std::int64_t> to_integers(const SignalChunk& chunk) {
    return convert_integers<std::int64_t>(chunk);
}

RunReference parse_run_reference(const std::string& text) {
    // '#' is a legal character in names of files and of runs: the first one behind something that exists
    // separates them. On another machine, and where nothing exists, the name itself must tell.
    namespace fs = std::filesystem;
    const auto split = [&](std::size_t hash) {
        return RunReference{text.substr(0, hash), text.substr(hash + 1)};
    };
    std::error_code error;
    const bool elsewhere = remote::is_remote(text);
    if (!elsewhere && fs::exists(text, error)) {
        return {text, {}};
    }
    for (std::size_t hash = text.find('#'); !elsewhere && hash != std::string::npos;
         hash = text.find('#', hash + 1)) {
        const std::string trace = text.substr(0, hash);
        // A folder is one of shards only where nothing in it is named.
        if (fs::is_directory(trace, error) ? text.find('/', hash) == std::string::npos
                                           : fs::exists(trace, error)) {
            return split(hash);
        }
    }
    const std::size_t last = text.rfind('#');
    constexpr std::string_view suffix = ".ponder";
    const bool whole = text.find('/', last) != std::string::npos ||
                       (text.ends_with(suffix) && !text.substr(0, last).ends_with(suffix));
    if (last == 0 || last == std::string::npos || (elsewhere && whole)) {
        return {text, {}};
    }
    const std::size_t first = text.find(std::string(suffix) + "#");
    return split(first != std::string::npos ? first + suffix.size() : last);
}

namespace {

/// Whether a policy was rerun on \p source to make \p run: `policy --rerun` names it "SOURCE POLICY".
bool is_named_rerun_of(const RunInfo& run, const RunInfo& source) {
    return run.id != source.id && !run.policy.empty() && run.text_digest == source.text_digest &&
           run.checkpoint_digest == source.checkpoint_digest &&
           run.name.starts_with(source.name + " " + run.policy);
}

} // namespace

RunInfo find_run(const TraceReader& reader, const std::string& name) {
    const std::vector<RunInfo> runs = reader.runs();
    if (name.empty()) {
        std::vector<const RunInfo*> originals;
        for (const RunInfo& run : runs) {
            if (std::none_of(runs.begin(), runs.end(),
                             [&](const RunInfo& source) { return is_named_rerun_of(run, source); })) {
                originals.push_back(&run);
            }
        }
        if (originals.size() == 1) {
            return *originals.front();
        }
    }
    for (const RunInfo& run : runs) {
        if (!name.empty() && run.name == name) {
            return run;
        }
    }
    if (const auto number = parse_number<std::int64_t>(name)) {
        for (const RunInfo& run : runs) {
            if (run.id == *number) {
                return run;
            }
        }
    }
    if (runs.empty()) {
        throw InputError(reader.path(), "a run", "a trace without any", "record one into it");
    }
    std::string known;
    constexpr std::size_t most = 20;
    for (std::size_t i = 0; i < runs.size() && i < most; ++i) {
        known += (i == 0 ? "" : ", ") + runs[i].name;
    }
    if (runs.size() > most) {
        known += " and " + std::to_string(runs.size() - most) + " more";
    }
    throw InputError(reader.path(), name.empty() ? "the name of a run" : "a run named " + name,
                     "the runs " + known,
                     "write one of them after #, as in " + reader.short_name_of(runs.front()));
}

} // namespace ponderscope
