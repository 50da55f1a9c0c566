// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/remote/frames.h"

namespace ponderscope::remote {

Packer& Packer::number(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) {
        data += static_cast<char>(value >> (8 * i) & 0xff);
    }
    return *this;
}

Packer& Packer::text(std::string_view value) {
    return u32(value.size()).bytes(value);
}

Packer& Packer::bytes(std::string_view value) {
    data += value;
    return *this;
}

std::uint64_t Unpacker::number(int count) {
    const std::string_view raw = bytes(static_cast<std::size_t>(count));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < raw.size(); ++i) {
        value |= std::uint64_t{static_cast<unsigned char>(raw[i])} << (8 * i);
    }
    return value;
}

std::string_view Unpacker::bytes(std::size_t count) {
    if (count > data_.size()) {
        throw ProtocolFault("a frame that ends early");
    }
    const std::string_view taken = data_.substr(0, count);
    data_.remove_prefix(count);
    return taken;
}

void Unpacker::end() const {
    if (!data_.empty()) {
        throw ProtocolFault("a frame with extra bytes");
    }
}

std::string frame(std::uint32_t id, std::uint8_t kind, std::string_view payload) {
    Packer packer;
    packer.data.reserve(frame_header + payload.size());
    packer.u32(payload.size() + frame_header - 4).u32(id).u8(kind).bytes(payload);
    return std::move(packer.data);
}

bool FrameCutter::next(Frame& out) {
    const std::string_view all = std::string_view(data_).substr(from_);
    if (all.size() < 4) {
        return false;
    }
    const std::uint64_t length = Unpacker(all).u32();
    if (length < frame_header - 4 || length > limit_) {
        throw ProtocolFault("a frame of " + std::to_string(length) + " bytes");
    }
    if (all.size() < 4 + length) {
        return false;
    }
    Unpacker fields(all.substr(4, length));
    out.id = fields.u32();
    out.kind = fields.u8();
    out.payload = fields.rest();
    from_ += 4 + length;
    if (from_ == data_.size() || from_ > (std::size_t{1} << 20)) {
        data_.erase(0, from_);
        from_ = 0;
    }
    return true;
}

} // namespace ponderscope::remote
