// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/remote/page_snapshot.h"

#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/trace/schema.h"
#include "core/trace/trace_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string>
#include <sys/stat.h>

namespace ponderscope {
namespace {

constexpr std::size_t index_bytes = 136;
constexpr std::size_t log_header = 32;
constexpr std::size_t frame_header = 24;

std::uint32_t native(std::span<const std::byte> bytes, std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

Database open_there(const std::filesystem::path& path) {
    check_plain_file(path, "a trace", "choose a .ponder file that ponderscope record made");
    return with_read_access([&](Database::Access access) {
        Database database(path, access);
        std::array<char, 16> magic{};
        database.read_file(0, std::as_writable_bytes(std::span(magic)));
        if (std::string_view(magic.data(), magic.size()) != std::string_view("SQLite format 3\0", 16)) {
            throw InputError(ErrorId::file_kind, path, "a trace", "a file of another kind",
                             "choose a .ponder file that ponderscope record made");
        }
        database.execute("PRAGMA query_only=ON; PRAGMA mmap_size=0; PRAGMA cache_size=-2048");
        (void)database.integer("PRAGMA user_version"); // opens the locks and the log
        return database;
    });
}

} // namespace

PageSnapshot::PageSnapshot(const std::filesystem::path& path) : path_(path), database_(open_there(path)) {
    look();
}

void PageSnapshot::release() {
    if (held_) {
        held_ = false;
        in_log_.clear();
        database_.execute("COMMIT");
    }
}

bool PageSnapshot::renew() {
    const std::uint64_t before = generation_;
    release();
    look();
    return generation_ != before;
}

bool PageSnapshot::begin_again() {
    return held_ || !renew();
}

void PageSnapshot::look() {
    database_.execute("BEGIN");
    held_ = true;
    // The first read takes the lock of the transaction.
    page_bytes_ = static_cast<std::uint32_t>(database_.integer("PRAGMA page_size"));
    auto pages = static_cast<std::uint64_t>(database_.integer("PRAGMA page_count"));
    (void)database_.integer("PRAGMA schema_version");
    std::array<std::byte, index_bytes> index{};
    std::uint32_t frames = 0;
    std::vector<std::byte> salts;
    if (database_.read_log_index(index)) {
        constexpr std::uint32_t index_version = 3'007'000;
        if (native(index, 0) != index_version) {
            throw EnvironmentError(ErrorId::file_changed,
                                   path_.string() +
                                       ": expected a known version of the write-ahead log's index, found "
                                       "another version; wait until the recording ends.");
        }
        frames = native(index, 16);
        salts.assign(index.begin() + 32, index.begin() + 40);
        if (frames > 0) {
            pages = native(index, 20);
        }
        if (native(index, 96) >= frames) {
            // The file has all frames of the log. Do not use the log, because a writer may restart it.
            frames = 0;
        }
    }
    size_ = pages * page_bytes_;
    const bool same_log = salts == salts_ && frames >= frames_ && frames_ > 0;
    std::set<std::uint32_t> changed;
    for (std::uint32_t one = 1; one <= frames; ++one) {
        std::array<unsigned char, 4> number{};
        database_.read_log(static_cast<std::int64_t>(log_header + (one - 1) * (frame_header + page_bytes_)),
                           std::as_writable_bytes(std::span(number)));
        const std::uint32_t page = std::uint32_t{number[0]} << 24 | std::uint32_t{number[1]} << 16 |
                                   std::uint32_t{number[2]} << 8 | number[3];
        in_log_[page] = one;
        if (one > frames_) {
            changed.insert(page);
        }
    }
    std::array<char, 4> counter{}; // counts transactions if there is no log
    database_.read_file(24, std::as_writable_bytes(std::span(counter)));
    struct stat file {};
    if (::stat(path_.c_str(), &file) != 0) {
        file = {};
    }
    // The log's salts and the number of frames identify the content of a log. Without a log, the counter and
    // the file's time identify the content. While a log is used, copying its frames into the file changes no
    // byte that readers see.
    std::string what = std::to_string(file.st_dev) + ' ' + std::to_string(file.st_ino) + ' ' +
                       std::to_string(size_) + ' ' + std::to_string(frames);
    if (frames > 0) {
        what.append(reinterpret_cast<const char*>(salts.data()), salts.size());
    } else {
        what.append(counter.data(), counter.size());
        what += ' ' + std::to_string(file.st_mtim.tv_sec) + ' ' + std::to_string(file.st_mtim.tv_nsec);
    }
    const Sha256::Digest digest = Sha256().update(what).finish();
    const std::uint64_t before = generation_;
    std::memcpy(&generation_, digest.data(), sizeof generation_);
    generation_ = std::max<std::uint64_t>(generation_, 1);
    knows_changes_ = generation_ == before || same_log;
    changes_.assign(changed.begin(), changed.end());
    salts_ = std::move(salts);
    frames_ = frames;
}

void PageSnapshot::read(std::uint64_t offset, std::span<std::byte> out) {
    while (!out.empty()) {
        const std::uint64_t page = offset / page_bytes_ + 1;
        const std::uint64_t within = offset % page_bytes_;
        const std::span<std::byte> part = out.first(std::min<std::size_t>(out.size(), page_bytes_ - within));
        const auto frame = in_log_.find(static_cast<std::uint32_t>(page));
        if (frame == in_log_.end()) {
            database_.read_file(static_cast<std::int64_t>(offset), part);
        } else {
            database_.read_log(static_cast<std::int64_t>(log_header +
                                                         (frame->second - 1) * (frame_header + page_bytes_) +
                                                         frame_header + within),
                               part);
        }
        offset += part.size();
        out = out.subspan(part.size());
    }
}

} // namespace ponderscope
