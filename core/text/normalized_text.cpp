// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/normalized_text.h"

#include "core/base/error.h"

#include <algorithm>
#include <limits>

namespace ponderscope {

std::size_t NormalizedText::Cursor::source_offset(std::size_t offset) {
    const auto& edits = text_->edits_;
    if (edits.empty()) {
        return offset;
    }
    if (offset == text_->text().size()) {
        return text_->source_.size();
    }
    while (edit_ < edits.size() && edits[edit_].text_begin < offset) {
        ++edit_;
    }
    if (edit_ == 0) {
        return offset;
    }
    const Edit& e = edits[edit_ - 1];
    const std::size_t inside = offset - e.text_begin;
    if (inside >= e.text_size) {
        return e.source_begin + e.source_size + (inside - e.text_size);
    }
    return e.source_begin + static_cast<std::size_t>(std::uint64_t{inside} * e.source_size / e.text_size);
}

// Combines the edits of two passes. The middle is the text between the passes, to which first.text and
// second.source refer. Edits that overlap in the middle become one edit. Other edits only move.
std::vector<NormalizedText::Edit> NormalizedText::compose(const std::vector<Edit>& first,
                                                          const std::vector<Edit>& second) {
    if (first.empty()) {
        return second;
    }
    std::vector<Edit> result;
    result.reserve(first.size() + second.size());
    std::size_t i = 0;
    std::size_t j = 0;
    std::int64_t to_source = 0; // middle offset + to_source = source offset, after the first i edits
    std::int64_t to_text = 0;
    std::int64_t end = 0; // end of the absorbed edits, in the middle
    const auto absorb_first = [&] {
        const Edit& e = first[i++];
        end = std::max(end, std::int64_t{e.text_begin} + e.text_size);
        to_source += std::int64_t{e.source_size} - e.text_size;
    };
    const auto absorb_second = [&] {
        const Edit& e = second[j++];
        end = std::max(end, std::int64_t{e.source_begin} + e.source_size);
        to_text += std::int64_t{e.text_size} - e.source_size;
    };
    while (i < first.size() || j < second.size()) {
        constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
        const std::int64_t a = i < first.size() ? std::int64_t{first[i].text_begin} : never;
        const std::int64_t b = j < second.size() ? std::int64_t{second[j].source_begin} : never;
        const std::int64_t begin = std::min(a, b);
        const std::int64_t source_begin = begin + to_source;
        const std::int64_t text_begin = begin + to_text;
        end = begin;
        // At the same offset, an edit that is empty in the middle comes first.
        if (a < b || (a == b && first[i].text_size == 0)) {
            absorb_first();
        } else {
            absorb_second();
        }
        while ((i < first.size() && first[i].text_begin < end) ||
               (j < second.size() && second[j].source_begin < end)) {
            if (i < first.size() && first[i].text_begin < end) {
                absorb_first();
            } else {
                absorb_second();
            }
        }
        result.push_back({static_cast<std::uint32_t>(text_begin),
                          static_cast<std::uint32_t>(end + to_text - text_begin),
                          static_cast<std::uint32_t>(source_begin),
                          static_cast<std::uint32_t>(end + to_source - source_begin)});
    }
    return result;
}

void Rewriter::keep(std::size_t bytes) {
    if (changed_) {
        out_.append(in_.substr(position_, bytes));
    }
    position_ += bytes;
}

void Rewriter::replace(std::size_t bytes, std::string_view with) {
    if (in_.substr(position_, bytes) == with) {
        keep(bytes);
        return;
    }
    if (!changed_) {
        changed_ = true;
        out_.reserve(in_.size() + in_.size() / 2 + with.size());
        out_.assign(in_.substr(0, position_));
    }
    if (out_.size() + with.size() > std::numeric_limits<std::uint32_t>::max()) {
        throw InputError(
            ErrorId::text_long,
            "The text: expected less than 4 GiB after normalisation, found more; split the text into parts.");
    }
    edits_.push_back({static_cast<std::uint32_t>(out_.size()), static_cast<std::uint32_t>(with.size()),
                      static_cast<std::uint32_t>(position_), static_cast<std::uint32_t>(bytes)});
    out_.append(with);
    position_ += bytes;
}

void Rewriter::finish() {
    keep(in_.size() - position_);
    if (!changed_) {
        return;
    }
    target_->edits_ = NormalizedText::compose(target_->edits_, edits_);
    target_->owned_ = std::move(out_);
    target_->changed_ = true;
}

} // namespace ponderscope
