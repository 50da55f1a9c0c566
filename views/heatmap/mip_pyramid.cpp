// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/mip_pyramid.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "views/common/paths.h"

#include <QCryptographicHash>
#include <QStandardPaths>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <system_error>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t quantile_count = 1001;
constexpr std::int64_t most_cells = std::int64_t{1} << 32; ///< of the finest level: 48 GB, far beyond use
constexpr char magic[8] = {'P', 'S', 'M', 'I', 'P', '0', '0', '1'};
static_assert(sizeof(MipPyramid::Block) == 12 && std::endian::native == std::endian::little);

std::int64_t blocks_of(std::int64_t rows, std::int64_t extent) {
    return (rows + extent - 1) / extent;
}

} // namespace

void MipPyramid::Block::add(const Block& other) {
    if (other.values() > 0) {
        largest = values() == 0 ? other.largest : std::max(largest, other.largest);
        sum += other.sum;
    }
    count = ((values() + other.values()) & ~ran_bit) | ((count | other.count) & ran_bit);
}

MipPyramid::Builder::Builder(std::int64_t rows, std::int64_t steps) : rows_(rows), steps_(steps) {
    if (rows < 1 || steps < 1 || steps > (1 << 20) || blocks_of(rows, base) > most_cells / steps) {
        throw std::invalid_argument("MipPyramid: rows and steps out of range");
    }
    finest_.resize(static_cast<std::size_t>(blocks_of(rows, base) * steps));
    constexpr std::int64_t enough = 200'000;
    sample_every_ = rows * steps / enough + 1;
}

void MipPyramid::Builder::add(std::span<const float> values, std::span<const std::int32_t> executed) {
    const auto count = std::min({static_cast<std::int64_t>(executed.size()),
                                 static_cast<std::int64_t>(values.size()) / steps_, rows_ - next_});
    for (std::int64_t i = 0; i < count; ++i, ++next_) {
        const std::int32_t last = executed[static_cast<std::size_t>(i)];
        Block* block = finest_.data() + next_ / base * steps_;
        const float* row = values.data() + i * steps_;
        has_halted_ = has_halted_ || last + std::int64_t{1} < steps_;
        for (std::int64_t step = 0; step < steps_ && step <= last; ++step) {
            Block& cell = block[step];
            cell.count |= Block::ran_bit;
            const float value = row[step];
            if (std::isnan(value)) {
                continue;
            }
            cell.largest = cell.values() == 0 ? value : std::max(cell.largest, value);
            cell.sum += value;
            ++cell.count;
            if ((next_ * steps_ + step) % sample_every_ == 0 && std::isfinite(value)) {
                sample_.push_back(value);
            }
        }
    }
}

MipPyramid MipPyramid::Builder::finish() && {
    MipPyramid made;
    made.rows_ = rows_;
    made.steps_ = steps_;
    made.has_halted_ = has_halted_;
    made.levels_.push_back(std::move(finest_));
    for (std::int64_t fine = blocks_of(rows_, base); fine > 1;) {
        const std::int64_t coarse = blocks_of(fine, factor);
        const std::vector<Block>& from = made.levels_.back();
        std::vector<Block> to(static_cast<std::size_t>(coarse * steps_));
        for (std::int64_t block = 0; block < fine; ++block) {
            for (std::int64_t step = 0; step < steps_; ++step) {
                to[static_cast<std::size_t>(block / factor * steps_ + step)].add(
                    from[static_cast<std::size_t>(block * steps_ + step)]);
            }
        }
        made.levels_.push_back(std::move(to));
        fine = coarse;
    }
    if (!sample_.empty()) {
        std::sort(sample_.begin(), sample_.end());
        for (std::size_t i = 0; i < quantile_count; ++i) {
            made.quantiles_.push_back(sample_[(sample_.size() - 1) * i / (quantile_count - 1)]);
        }
    }
    return made;
}

std::int64_t MipPyramid::extent(std::size_t level) {
    std::int64_t rows = base;
    for (; level > 0; --level) {
        rows *= factor;
    }
    return rows;
}

const MipPyramid::Block& MipPyramid::block(std::size_t level, std::int64_t number, std::int64_t step) const {
    return levels_[level][static_cast<std::size_t>(number * steps_ + step)];
}

MipPyramid::Block MipPyramid::over(std::int64_t begin, std::int64_t end, std::int64_t step) const {
    begin = std::clamp<std::int64_t>(begin, 0, rows_ - 1);
    end = std::clamp<std::int64_t>(end, begin + 1, rows_);
    std::size_t level = 0;
    std::int64_t wide = base;
    while (level + 1 < levels_.size() && wide * factor <= end - begin) {
        ++level;
        wide *= factor;
    }
    std::int64_t number = (begin + wide - 1) / wide;
    if (number * wide >= end) {
        return block(level, begin / wide, step);
    }
    Block result;
    for (; number * wide < end; ++number) {
        result.add(block(level, number, step));
    }
    return result;
}

double MipPyramid::quantile(double share) const {
    if (quantiles_.empty()) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(quantiles_.size() - 1);
    return static_cast<double>(quantiles_[static_cast<std::size_t>(std::lround(place))]);
}

std::size_t MipPyramid::bytes() const {
    std::size_t sum = quantiles_.size() * sizeof(float);
    for (const std::vector<Block>& level : levels_) {
        sum += level.size() * sizeof(Block);
    }
    return sum;
}

namespace {

/// Fixed head of a sidecar; the key, the quantiles and the levels follow.
struct Head {
    char magic[8];
    std::int64_t rows = 0;
    std::int64_t steps = 0;
    std::uint64_t key_bytes = 0;
    std::uint64_t quantiles = 0;
    std::uint64_t halted = 0;
};

} // namespace

bool MipPyramid::write(const fs::path& path, const std::string& key) const {
    if (path.empty()) {
        return false;
    }
    Head head{{}, rows_, steps_, key.size(), quantiles_.size(), has_halted_ ? 1U : 0U};
    std::memcpy(head.magic, magic, sizeof magic);
    // A name of its own first: a reader never sees half a file.
    fs::path half = path;
    half += ".part";
    std::error_code ignored;
    {
        std::ofstream file(half, std::ios::binary | std::ios::trunc);
        const auto put = [&file](const void* data, std::size_t size) {
            file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
        };
        put(&head, sizeof head);
        put(key.data(), key.size());
        put(quantiles_.data(), quantiles_.size() * sizeof(float));
        for (const std::vector<Block>& level : levels_) {
            put(level.data(), level.size() * sizeof(Block));
        }
        file.close();
        if (!file) {
            fs::remove(half, ignored);
            return false;
        }
    }
    std::error_code failed;
    fs::rename(half, path, failed);
    if (failed) {
        fs::remove(half, ignored);
    }
    return !failed;
}

std::optional<MipPyramid> MipPyramid::read(const fs::path& path, const std::string& key) {
    std::error_code failed;
    const std::uintmax_t size = path.empty() ? 0 : fs::file_size(path, failed);
    Head head{};
    if (failed || size < sizeof head) {
        return std::nullopt;
    }
    std::ifstream file(path, std::ios::binary);
    const auto get = [&file](void* data, std::size_t bytes) {
        file.read(static_cast<char*>(data), static_cast<std::streamsize>(bytes));
        return static_cast<bool>(file);
    };
    if (!get(&head, sizeof head) || std::memcmp(head.magic, magic, sizeof magic) != 0 || head.rows < 1 ||
        head.steps < 1 || head.steps > (1 << 20) || head.key_bytes != key.size() ||
        head.quantiles > quantile_count || blocks_of(head.rows, base) > most_cells / head.steps) {
        return std::nullopt;
    }
    // The sizes follow from rows and steps; the file must have exactly them before anything is reserved.
    std::vector<std::int64_t> blocks{blocks_of(head.rows, base)};
    while (blocks.back() > 1) {
        blocks.push_back(blocks_of(blocks.back(), factor));
    }
    std::uintmax_t expected = sizeof head + head.key_bytes + head.quantiles * sizeof(float);
    for (const std::int64_t count : blocks) {
        expected +=
            static_cast<std::uintmax_t>(count) * static_cast<std::uintmax_t>(head.steps) * sizeof(Block);
    }
    std::string stored(key.size(), '\0');
    if (expected != size || !get(stored.data(), stored.size()) || stored != key) {
        return std::nullopt;
    }
    MipPyramid made;
    made.rows_ = head.rows;
    made.steps_ = head.steps;
    made.has_halted_ = head.halted != 0;
    made.quantiles_.resize(head.quantiles);
    if (!get(made.quantiles_.data(), made.quantiles_.size() * sizeof(float))) {
        return std::nullopt;
    }
    for (const std::int64_t count : blocks) {
        made.levels_.emplace_back(static_cast<std::size_t>(count * head.steps));
        if (!get(made.levels_.back().data(), made.levels_.back().size() * sizeof(Block))) {
            return std::nullopt;
        }
    }
    fs::last_write_time(path, fs::file_time_type::clock::now(), failed); // used just now
    return made;
}

std::string mip_key(const fs::path& trace, const std::string& rest) {
    std::error_code failed;
    const fs::path absolute = fs::absolute(trace, failed).lexically_normal();
    const std::uintmax_t size = fs::file_size(absolute, failed);
    const auto time = fs::last_write_time(absolute, failed).time_since_epoch().count();
    return absolute.string() + "\n" + std::to_string(size) + "\n" + std::to_string(time) + "\n" + rest;
}

fs::path mip_sidecar(const std::string& key, std::uintmax_t limit) {
    const QString cache = QStandardPaths::writableLocation(QStandardPaths::GenericCacheLocation);
    if (cache.isEmpty()) {
        return {};
    }
    const fs::path folder = path_of(cache) / "ponderscope" / "heatmaps";
    std::error_code failed;
    fs::create_directories(folder, failed);
    if (failed) {
        return {};
    }
    struct Known {
        fs::path path;
        fs::file_time_type time;
        std::uintmax_t size = 0;
    };
    std::vector<Known> files;
    std::uintmax_t sum = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
        if (entry.path().extension() == ".mip") {
            files.push_back({entry.path(), entry.last_write_time(failed), entry.file_size(failed)});
            sum += files.back().size;
        }
    }
    std::sort(files.begin(), files.end(), [](const Known& a, const Known& b) { return a.time < b.time; });
    for (const Known& file : files) {
        if (sum <= limit) {
            break;
        }
        sum -= std::min(sum, file.size);
        fs::remove(file.path, failed);
    }
    const QByteArray name =
        QCryptographicHash::hash(QByteArray::fromStdString(key), QCryptographicHash::Sha256).toHex();
    return folder / (name.toStdString() + ".mip");
}

} // namespace ponderscope
