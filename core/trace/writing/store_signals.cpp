// SPDX-License-Identifier: GPL-3.0-or-later
// TraceStore: values of signals, as they are, or compressed.
#include "core/trace/packed_values.h"
#include "core/trace/writing/store.h"

#include <span>

namespace ponderscope {

std::int64_t TraceStore::store_chunk(const SignalPlace& signal, const ChunkBuffer::Piece& piece) {
    const std::vector<std::byte> packed = compress_ || signal.storage == SignalStorage::compressed
                                              ? compress_values(piece.data, piece.tokens)
                                              : std::vector<std::byte>();
    const std::span<const std::byte> data = packed.empty() ? piece.data : packed;
    const std::string dtype =
        std::string(name_of(piece.dtype)) + std::string(packed.empty() ? "" : compressed_suffix);
    const std::int64_t crc = crc32_of(data);
    if (piece.row != 0) {
        update_chunk_.run(piece.tokens, piece.shape, data, crc, dtype, piece.row);
        return piece.row;
    }
    insert_chunk_.run(next_chunk_, sequence_, signal.id, piece.first_token, piece.tokens, dtype, piece.shape,
                      data, crc);
    return next_chunk_++;
}

void TraceStore::flush_tails() {
    for (auto& [name, buffer] : buffers_) {
        const SignalPlace& signal = signals_.at(name);
        buffer.flush([&](const ChunkBuffer::Piece& piece) { return store_chunk(signal, piece); });
    }
}

} // namespace ponderscope
