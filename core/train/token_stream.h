// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace ponderscope {

/// Token ids one after the other, in memory or in mapped files, in pieces that are 16 or 32 bits wide. Looks
/// at what others own.
class TokenStream {
public:
    TokenStream() = default;
    TokenStream(std::span<const std::int32_t> ids) { add(std::as_bytes(ids), sizeof(std::int32_t)); }
    TokenStream(const std::vector<std::int32_t>& ids) : TokenStream(std::span(ids)) {}

    /// Unsigned little-endian numbers of \p width bytes, 2 or 4, behind what is there.
    void add(std::span<const std::byte> bytes, std::size_t width) {
        pieces_.push_back({size_, bytes.data(), width});
        size_ += static_cast<std::int64_t>(bytes.size() / width);
    }
    /// Forgets what stands behind the first \p size.
    void end_at(std::int64_t size) { size_ = size; }

    [[nodiscard]] std::int64_t size() const { return size_; }
    /// Ids [begin, begin + out.size()), which must be there.
    void read(std::int64_t begin, std::span<std::int32_t> out) const {
        auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), begin,
                                      [](std::int64_t place, const Piece& one) { return place < one.begin; });
        --piece;
        for (std::size_t done = 0; done < out.size();) {
            const std::int64_t place = begin + static_cast<std::int64_t>(done);
            const std::int64_t end = piece + 1 == pieces_.end() ? size_ : (piece + 1)->begin;
            const auto count = std::min(out.size() - done, static_cast<std::size_t>(end - place));
            const std::byte* from =
                piece->data + static_cast<std::size_t>(place - piece->begin) * piece->width;
            for (std::size_t i = 0; i < count; ++i) {
                std::uint32_t id = 0;
                std::memcpy(&id, from + i * piece->width, piece->width);
                out[done + i] = static_cast<std::int32_t>(id);
            }
            done += count;
            ++piece;
        }
    }

private:
    struct Piece {
        std::int64_t begin = 0; ///< of its first id in the stream
        const std::byte* data = nullptr;
        std::size_t width = 0;
    };
    std::vector<Piece> pieces_;
    std::int64_t size_ = 0;
};

} // namespace ponderscope
