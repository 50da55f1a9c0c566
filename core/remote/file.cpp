// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/remote/file.h"

#include "core/base/error.h"

#include <algorithm>
#include <cstring>

namespace ponderscope::remote {
namespace {

constexpr std::uint64_t block_bytes = 1 << 16;
constexpr std::size_t most_blocks = (std::size_t{128} << 20) / block_bytes;
/// Number of blocks in a fetch: 256 KiB after a jump, up to 4 MiB during sequential reads.
constexpr std::uint64_t first_ahead = 4;
constexpr std::uint64_t most_ahead = 64;
/// A read is sequential if it begins at most this many blocks after the last fetch: readers skip data.
constexpr std::uint64_t gap = 64;

} // namespace

File::File(const Address& address) : path_(address.path), host_(Host::of(address)) {}

namespace {

struct OpenFiles {
    std::mutex mutex;
    std::map<std::string, std::weak_ptr<File>> files;
};

OpenFiles& open_files() {
    static OpenFiles files;
    return files;
}

} // namespace

std::shared_ptr<File> File::of(const std::string& url) {
    const Address address = parse_address(url);
    auto& [mutex, files] = open_files();
    const std::lock_guard lock(mutex);
    std::erase_if(files, [](const auto& entry) { return entry.second.expired(); });
    std::weak_ptr<File>& place = files[address.url()];
    std::shared_ptr<File> file = place.lock();
    if (!file) {
        place = file = std::make_shared<File>(address);
    }
    return file;
}

std::shared_ptr<File> File::opened(const std::string& url) {
    auto& [mutex, files] = open_files();
    const std::lock_guard lock(mutex);
    const auto place = files.find(parse_address(url).url());
    return place == files.end() ? nullptr : place->second.lock();
}

File::Snapshot::Snapshot(std::shared_ptr<File> file) : file_(std::move(file)) {
    file_->begin();
}

File::Snapshot::~Snapshot() {
    const std::lock_guard lock(file_->mutex_);
    --file_->snapshots_;
}

void File::begin() {
    const std::lock_guard lock(mutex_);
    if (snapshots_ > 0) {
        stale_ = stale_ || expired_;
    } else if (expired_.exchange(false)) { // clear it before asking, so that later changes set it again
        try {
            renew();
        } catch (...) {
            expired_ = true;
            throw;
        }
        renewed_ = std::chrono::steady_clock::now();
        lost_ = false;
        stale_ = false;
    }
    ++snapshots_;
}

void File::expire() {
    expired_ = true; // no mutex: its owner may wait for the calling thread
}

void File::expire_old() {
    constexpr std::chrono::seconds fresh{1};
    const std::lock_guard lock(mutex_);
    if (std::chrono::steady_clock::now() - renewed_ > fresh) {
        expired_ = true;
    }
}

void File::renew() {
    const Host::Answer answer =
        host_->ask(Question::renew, std::move(Packer().text(path_).u64(state_.generation).data));
    FileState fresh;
    try {
        if (answer.status != Status::ok) {
            throw ProtocolFault("a message without the state of a file");
        }
        Unpacker fields(answer.payload);
        fresh.generation = fields.u64();
        fresh.size = fields.u64();
        fresh.page_bytes = fields.u32();
        fresh.all_changed = fields.u8() != 0;
        const std::uint32_t pages = fields.u32();
        for (std::uint32_t i = 0; i < pages; ++i) {
            fresh.pages_changed.push_back(fields.u32());
        }
        fresh.head = fields.text();
        fields.end();
        if (fresh.generation == 0 || fresh.page_bytes < 512 || fresh.page_bytes > 65536 ||
            (fresh.page_bytes & (fresh.page_bytes - 1)) != 0 || fresh.head.size() > fresh.size) {
            throw ProtocolFault("an impossible state of a file");
        }
    } catch (const ProtocolFault& fault) {
        throw EnvironmentError(ErrorId::remote_connection,
                               host_->machine() + ": expected an answer from ponderscope, found " +
                                   fault.what() + "; install the same version on both machines.");
    }
    traffic_.bytes += answer.payload.size();
    ++traffic_.answers;
    if (fresh.generation == state_.generation) {
        return;
    }
    if (fresh.all_changed) {
        blocks_.clear();
        uses_.clear();
    } else {
        forget(state_.size / block_bytes); // the old end of the file cut this block
        for (const std::uint32_t page : fresh.pages_changed) {
            forget((std::uint64_t{page} - 1) * fresh.page_bytes / block_bytes);
        }
    }
    for (std::uint64_t at = 0; at < fresh.head.size(); at += block_bytes) {
        const std::string bytes = fresh.head.substr(at, block_bytes);
        if (bytes.size() == block_bytes || at + bytes.size() == fresh.size) {
            keep(at / block_bytes, bytes);
        }
    }
    state_ = std::move(fresh);
    ++version_;
}

std::uint64_t File::size() {
    const std::lock_guard lock(mutex_);
    return state_.size;
}

std::uint32_t File::page_bytes() {
    const std::lock_guard lock(mutex_);
    return state_.page_bytes;
}

std::uint32_t File::version() {
    const std::lock_guard lock(mutex_);
    return version_;
}

File::Traffic File::traffic() {
    const std::lock_guard lock(mutex_);
    return traffic_;
}

void File::forget(std::uint64_t index) {
    if (const auto place = blocks_.find(index); place != blocks_.end()) {
        uses_.erase(place->second.use);
        blocks_.erase(place);
    }
}

void File::keep(std::uint64_t index, std::string bytes) {
    forget(index);
    uses_.push_front(index);
    blocks_.emplace(index, Block{std::move(bytes), uses_.begin()});
    while (blocks_.size() > most_blocks) {
        forget(uses_.back());
    }
}

const std::string& File::block(std::unique_lock<std::mutex>& lock, std::uint64_t index) {
    if (const auto place = blocks_.find(index); place != blocks_.end()) {
        uses_.splice(uses_.begin(), uses_, place->second.use);
        return place->second.bytes;
    }
    if (lost_) {
        throw Moved("changed while it was read");
    }
    const bool on = index >= next_ && index < next_ + gap;
    ahead_ = on ? std::min(2 * ahead_, most_ahead) : first_ahead;
    const std::uint64_t blocks = (state_.size + block_bytes - 1) / block_bytes;
    std::uint64_t end = index + 1;
    while (end < std::min(index + ahead_, blocks) && !blocks_.contains(end)) {
        ++end;
    }
    const std::uint64_t from = index * block_bytes;
    const std::uint64_t length = std::min(end * block_bytes, state_.size) - from;
    next_ = end;
    const std::uint64_t generation = state_.generation;
    lock.unlock(); // other readers continue
    const Host::Answer answer = host_->ask(
        Question::read, std::move(Packer().text(path_).u64(generation).u64(from).u32(length).data));
    lock.lock();
    traffic_.bytes += answer.payload.size();
    ++traffic_.answers;
    if (state_.generation != generation) {
        throw Moved("changed while it was read"); // and a newer snapshot exists
    }
    if (answer.status == Status::moved) {
        // Cached blocks are still consistent. Other blocks of this generation no longer exist.
        expired_ = true;
        lost_ = true;
        throw Moved("changed while it was read");
    }
    if (answer.payload.size() != length) {
        throw EnvironmentError(ErrorId::remote_connection,
                               host_->machine() + ": expected " + std::to_string(length) +
                                   " bytes of the file, found " + std::to_string(answer.payload.size()) +
                                   "; install the same version on both machines.");
    }
    for (std::uint64_t i = end; i-- > index;) { // backwards, so that the requested block is the most recent
        keep(i, answer.payload.substr((i - index) * block_bytes, block_bytes));
    }
    return blocks_.at(index).bytes;
}

bool File::read(std::uint64_t offset, std::span<std::byte> out) {
    std::unique_lock lock(mutex_);
    while (!out.empty() && offset < state_.size) {
        const std::string& bytes = block(lock, offset / block_bytes);
        const std::size_t within = offset % block_bytes;
        const std::size_t count = std::min(out.size(), bytes.size() - within);
        std::memcpy(out.data(), bytes.data() + within, count);
        offset += count;
        out = out.subspan(count);
    }
    std::fill(out.begin(), out.end(), std::byte{0});
    return out.empty();
}

struct Watch::Shared {
    std::mutex mutex;
    Looked looked;
    bool known = false;
    bool asked = false;
};

Watch::Watch(const std::string& url)
    : url_(url),
      path_(parse_address(url).path),
      host_(Host::of(parse_address(url))),
      shared_(std::make_shared<Shared>()) {}

bool Watch::look(Looked& out) {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->asked) {
        shared_->asked = true;
        host_->ask_later(Question::look, std::move(Packer().text(path_).data),
                         [shared = shared_, url = url_](const Host::Answer& answer) {
                             const std::lock_guard hold(shared->mutex);
                             shared->asked = false;
                             if (answer.status != Status::ok) {
                                 return;
                             }
                             const Looked now = read_looked(answer.payload);
                             const Looked& before = shared->looked;
                             // Also expire at the first answer: the File may have read older content.
                             if (!shared->known || now.inode != before.inode || now.size != before.size ||
                                 !std::equal(now.times, now.times + 2, before.times)) {
                                 if (const std::shared_ptr<File> file = File::opened(url)) {
                                     file->expire();
                                 }
                             }
                             shared->looked = now;
                             shared->known = true;
                         });
    }
    out = shared_->looked;
    return shared_->known;
}

bool Watch::is_stale() const {
    const std::shared_ptr<File> file = File::opened(url_);
    return file && file->is_stale();
}

} // namespace ponderscope::remote
