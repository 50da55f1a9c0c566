// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope {

/// A text after normalisation, with the source offset of each byte. Stores only the edits, so a text without
/// edits is a view of its source. The text must have less than 4 GiB.
class NormalizedText {
public:
    /// A text without edits. \p source must outlive the object.
    explicit NormalizedText(std::string_view source) : source_(source) {}

    [[nodiscard]] std::string_view text() const { return changed_ ? std::string_view(owned_) : source_; }

    /// Converts offsets to source offsets. From call to call, offsets must not decrease. source_offset maps
    /// [0, text().size()] monotonically onto [0, source size], so spans of neighbouring tokens have no
    /// overlap and no gap. Removed text belongs to the next character, or at the end of the text to the last
    /// character. Inside a replacement, offsets are proportional.
    class Cursor {
    public:
        explicit Cursor(const NormalizedText& text) : text_(&text) {}
        std::size_t source_offset(std::size_t offset);

    private:
        const NormalizedText* text_;
        std::size_t edit_ = 0; ///< number of edits before the last requested offset
    };

private:
    friend class Rewriter;
    struct Edit {
        std::uint32_t text_begin, text_size, source_begin, source_size;
    };
    static std::vector<Edit> compose(const std::vector<Edit>& first, const std::vector<Edit>& second);

    std::string_view source_;
    std::string owned_;
    bool changed_ = false;
    std::vector<Edit> edits_; ///< sorted, without overlaps
};

/// One pass over a NormalizedText, from the first byte to the last, that keeps or replaces parts.
class Rewriter {
public:
    explicit Rewriter(NormalizedText& text) : target_(&text), in_(text.text()) {}

    [[nodiscard]] std::string_view input() const { return in_; }
    [[nodiscard]] std::size_t position() const { return position_; }
    /// The position of the next output byte in the new text.
    [[nodiscard]] std::size_t output_position() const { return changed_ ? out_.size() : position_; }

    void keep(std::size_t bytes);
    void keep_until(std::size_t position) { keep(position - position_); }
    /// Replaces the next \p bytes bytes of the input by \p with. \p bytes may be 0, and \p with may be empty.
    void replace(std::size_t bytes, std::string_view with);
    /// Keeps the rest and stores the result in the text. Earlier views of the text become invalid.
    void finish();

private:
    NormalizedText* target_;
    std::string_view in_;
    std::size_t position_ = 0;
    bool changed_ = false;
    std::string out_;
    std::vector<NormalizedText::Edit> edits_;
};

} // namespace ponderscope
