// SPDX-License-Identifier: GPL-3.0-or-later
// TraceStore: values of signals, as they are, compressed, or added up.
#include "core/trace/packed_values.h"
#include "core/trace/writing/store.h"

#include <span>

namespace ponderscope {

void TraceStore::choose_form(const std::string& record_level) {
    packed_ = record_level == "scalars";
    compress_ = packed_ || always_compress_;
}

std::int64_t TraceStore::store_chunk(const SignalPlace& signal, const ChunkBuffer::Piece& piece) {
    const std::vector<std::byte> packed = compress_ || signal.storage == SignalStorage::compressed
                                              ? compress_values(piece.data, piece.tokens)
                                              : std::vector<std::byte>();
    const std::span<const std::byte> data = packed.empty() ? piece.data : packed;
    const std::string dtype =
        std::string(name_of(piece.dtype)) + std::string(packed.empty() ? "" : compressed_suffix);
    const std::int64_t crc = crc32_of(data);
    if (piece.row != 0) {
        update_chunk_.bind(1, piece.tokens)
            .bind(2, std::string_view(piece.shape))
            .bind(3, data)
            .bind(4, crc)
            .bind(5, std::string_view(dtype))
            .bind(6, piece.row);
        update_chunk_.run();
        return piece.row;
    }
    insert_chunk_.bind(1, next_chunk_)
        .bind(2, sequence_)
        .bind(3, signal.id)
        .bind(4, piece.first_token)
        .bind(5, piece.tokens)
        .bind(6, std::string_view(dtype))
        .bind(7, std::string_view(piece.shape))
        .bind(8, data)
        .bind(9, crc);
    insert_chunk_.run();
    return next_chunk_++;
}

void TraceStore::flush_tails() {
    for (auto& [name, buffer] : buffers_) {
        const SignalPlace& signal = signals_.at(name);
        buffer.flush([&](const ChunkBuffer::Piece& piece) { return store_chunk(signal, piece); });
    }
}

void TraceStore::put_signal_sums(const std::string& signal, const SignalSums& sums) {
    begin();
    sums_[signal].add(sums);
    sums_changed_ = true;
}

void TraceStore::write_sums() {
    if (run_ == 0 || !sums_changed_) {
        return;
    }
    for (const auto& [name, sums] : sums_) {
        const std::vector<std::byte> data = sums.bytes();
        std::string shape = "[";
        for (const std::int64_t length : sums.shape) {
            shape += (shape.size() == 1 ? "" : ",") + std::to_string(length);
        }
        shape += "]";
        Statement put = database_.prepare("INSERT OR REPLACE INTO signal_sum (signal, shape, data, crc32) "
                                          "VALUES (?, ?, ?, ?)");
        put.bind(1, signals_.at(name).id)
            .bind(2, std::string_view(shape))
            .bind(3, std::span<const std::byte>(data))
            .bind(4, std::int64_t{crc32_of(data)});
        put.run();
    }
    sums_changed_ = false;
}

} // namespace ponderscope
