// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace ponderscope::kernels {

/// An array of numbers on a 64-byte boundary, as the tile kernels want it. Not initialised.
template <typename T>
class AlignedArray {
    static_assert(std::is_trivial_v<T>);

public:
    AlignedArray() = default;
    explicit AlignedArray(std::size_t count) : size_(count) {
        const std::size_t bytes = (count * sizeof(T) + 63) / 64 * 64;
        data_.reset(static_cast<T*>(std::aligned_alloc(64, bytes == 0 ? 64 : bytes)));
        if (!data_) {
            throw std::bad_alloc();
        }
    }
    AlignedArray(std::size_t count, T value) : AlignedArray(count) { fill(value); }

    void fill(T value) {
        for (std::size_t i = 0; i < size_; ++i) {
            data_[i] = value;
        }
    }
    [[nodiscard]] T* data() { return data_.get(); }
    [[nodiscard]] const T* data() const { return data_.get(); }
    [[nodiscard]] std::size_t size() const { return size_; }
    T& operator[](std::size_t i) { return data_[i]; }
    const T& operator[](std::size_t i) const { return data_[i]; }

private:
    struct Free {
        void operator()(T* pointer) const { std::free(pointer); }
    };
    std::unique_ptr<T[], Free> data_;
    std::size_t size_ = 0;
};

} // namespace ponderscope::kernels
