// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/signal_sums.h"

#include "core/base/error.h"
#include "core/trace/database.h"
#include "core/trace/digests.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace ponderscope {
namespace {

constexpr double sum_unit = 0x1p24;
constexpr double square_unit = 0x1p28;

void add_to(std::int64_t& sum, std::int64_t value) {
    if (__builtin_add_overflow(sum, value, &sum)) {
        throw InputError("the values of a signal add up to more than 63 bits hold; record the corpus as "
                         "several runs.");
    }
}

std::int64_t fixed_point(double value) {
    constexpr double most = 0x1p62;
    return static_cast<std::int64_t>(std::clamp(std::nearbyint(value), -most, most));
}

} // namespace

void SignalSums::add(const SignalChunk& chunk) {
    const std::vector<std::int64_t> one(chunk.shape.begin() + 1, chunk.shape.end());
    if (counts.empty()) {
        std::size_t places = 1;
        for (const std::int64_t length : one) {
            places *= static_cast<std::size_t>(length);
        }
        shape = one;
        for (std::vector<std::int64_t>* values : {&counts, &sums, &squares}) {
            values->assign(places, 0);
        }
    }
    if (one != shape) {
        throw InputError("the values of a signal changed their shape; nothing is their sum.");
    }
    const std::vector<float> values = to_floats(chunk);
    for (std::size_t at = 0; at < values.size(); ++at) {
        const auto value = static_cast<double>(values[at]);
        if (std::isnan(value)) {
            continue; // the step did not run
        }
        const std::size_t place = at % counts.size();
        ++counts[place];
        add_to(sums[place], fixed_point(value * sum_unit));
        add_to(squares[place], fixed_point(value * value * square_unit));
    }
}

void SignalSums::add(const SignalSums& more) {
    if (counts.empty()) {
        *this = more;
        return;
    }
    if (more.shape != shape) {
        throw InputError("the sums of a signal have several shapes; they are of different models.");
    }
    for (std::size_t place = 0; place < counts.size(); ++place) {
        add_to(counts[place], more.counts[place]);
        add_to(sums[place], more.sums[place]);
        add_to(squares[place], more.squares[place]);
    }
}

double SignalSums::mean(std::size_t place) const {
    return static_cast<double>(sums[place]) / sum_unit / static_cast<double>(counts[place]);
}

double SignalSums::variance(std::size_t place) const {
    const double average = mean(place);
    const double square =
        static_cast<double>(squares[place]) / square_unit / static_cast<double>(counts[place]);
    // What is left below zero is the rounding of squares.
    return std::isnan(average) ? average : std::max(0.0, square - average * average);
}

std::vector<std::byte> SignalSums::bytes() const {
    std::vector<std::byte> all;
    for (const std::vector<std::int64_t>* values : {&counts, &sums, &squares}) {
        const auto part = std::as_bytes(std::span(*values));
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
}

std::optional<SignalSums> SignalSums::from(const std::string& shape, std::span<const std::byte> bytes,
                                           std::int64_t crc32) {
    constexpr std::size_t most = std::size_t{1} << 26; // places: what a stranger's trace may claim
    const nlohmann::json axes = nlohmann::json::parse(shape, nullptr, /*allow_exceptions=*/false);
    SignalSums found;
    std::size_t places = 1;
    if (!axes.is_array() || axes.empty()) {
        return std::nullopt;
    }
    for (const nlohmann::json& axis : axes) {
        if (!axis.is_number_integer() || axis < 1 || axis > static_cast<std::int64_t>(most / places)) {
            return std::nullopt;
        }
        found.shape.push_back(axis.get<std::int64_t>());
        places *= axis.get<std::size_t>();
    }
    const std::size_t part = places * sizeof(std::int64_t);
    if (bytes.size() != 3 * part || crc32_of(bytes) != crc32) {
        return std::nullopt;
    }
    std::size_t from = 0;
    for (std::vector<std::int64_t>* values : {&found.counts, &found.sums, &found.squares}) {
        values->resize(places);
        std::memcpy(values->data(), bytes.data() + from, part);
        from += part;
    }
    return found;
}

std::optional<SignalSums> signal_sums(const TraceReader& trace, const RunInfo& run,
                                      const SignalInfo& signal) {
    std::optional<SignalSums> all;
    if (signal.storage != SignalStorage::summed) {
        return all;
    }
    for (const std::filesystem::path& file : trace.files()) {
        Database database(file, Database::Access::read);
        // By name: a shard may have given the run another number.
        Statement row = database.prepare(
            "SELECT m.shape, m.data, m.crc32 FROM signal_sum m JOIN signal g ON g.id = m.signal "
            "JOIN run r ON r.id = g.run WHERE g.name = ? AND r.name = ?");
        row.bind_all(signal.name, run.name);
        if (!row.step()) {
            continue;
        }
        std::optional<SignalSums> found = SignalSums::from(row.text(0), row.blob(1), row.integer(2));
        if (!found) {
            throw InputError(file, "the sums of signal " + signal.name + " as recorded", "other bytes",
                             "the file is damaged; take it from its source again, or record it again");
        }
        if (all) {
            all->add(*found);
        } else {
            all = std::move(found);
        }
    }
    return all;
}

} // namespace ponderscope
