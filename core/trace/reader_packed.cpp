// SPDX-License-Identifier: GPL-3.0-or-later
// TraceReader: values that are compressed, and tokens that are packed.
#include "core/trace/packed_values.h"
#include "core/trace/reader.h"
#include "core/trace/reader_impl.h"

#include <algorithm>

namespace ponderscope {

void TraceReader::Impl::read_values(const ChunkRow& chunk, std::size_t skip, std::span<std::byte> out,
                                    const std::string& what) const {
    if (chunk.compressed_bytes == 0) {
        database.read_blob("chunk", "data", chunk.id, skip, out);
        return;
    }
    const auto all = static_cast<std::size_t>(chunk.tokens * chunk.token_bytes());
    const StatementReset reset{data_statement};
    data_statement.bind(1, chunk.id);
    const std::span<const std::byte> stored =
        data_statement.step() ? data_statement.blob(0) : std::span<const std::byte>();
    std::vector<std::byte> some;
    if (out.size() != all) {
        some.resize(all);
    }
    const std::span<std::byte> values = some.empty() ? out : std::span(some);
    if (!expand_values(stored, chunk.tokens, values)) {
        damaged("compressed values in " + what, "others from token " + std::to_string(chunk.first));
    }
    if (!some.empty()) {
        std::copy_n(some.begin() + static_cast<std::ptrdiff_t>(skip), out.size(), out.begin());
    }
}

bool TraceReader::Impl::is_packed(std::int64_t run) const {
    if (packed_run != run) {
        Statement find =
            database.prepare("SELECT count(*) FROM run WHERE id = ? AND record_level = 'scalars'");
        find.bind(1, run);
        packed = find.step() && find.integer(0) == 1;
        packed_run = run;
    }
    return packed;
}

TokenColumns TraceReader::packed_tokens(std::int64_t run, std::int64_t sequence, std::int64_t begin,
                                        std::int64_t end) const {
    const Impl::SequenceRow place = impl_->read([&] { return impl_->find_sequence(run, sequence); });
    const std::string which = "sequence " + std::to_string(sequence);
    const auto chunk = signal(run, sequence, packed_token_signal, begin, end);
    std::optional<TokenColumns> tokens;
    if (chunk) {
        tokens = unpack_tokens(*chunk);
    } else if (place.tokens == 0) {
        tokens.emplace();
    }
    if (!tokens) {
        impl_->damaged("packed tokens in " + which, "none");
    }
    for (std::size_t i = 0; i < tokens->size(); ++i) {
        if (tokens->end[i] < tokens->begin[i] ||
            tokens->end[i] > static_cast<std::uint64_t>(place.text_bytes) || tokens->rank[i] < 0) {
            impl_->damaged("token " + std::to_string(tokens->first + static_cast<std::int64_t>(i)) + " of " +
                               which,
                           "other values than a token can have");
        }
    }
    return std::move(*tokens);
}

} // namespace ponderscope
