// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/dist/collectives.h"
#include "core/train/adamw.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace ponderscope {

/// One training in several processes, each with the whole model and a part of each step's windows: what they
/// have to exchange so that the step is that of one process, to rounding. Alone, all of it does nothing. Not
/// thread-safe.
class DataParallel {
public:
    /// \p collectives may be null: alone. Must outlive this.
    DataParallel(Collectives* collectives, World world);
    ~DataParallel();
    DataParallel(const DataParallel&) = delete;
    DataParallel& operator=(const DataParallel&) = delete;

    [[nodiscard]] bool alone() const { return collectives_ == nullptr; }
    [[nodiscard]] bool writes() const { return world_.rank == 0; }
    [[nodiscard]] std::int64_t size() const { return world_.size; }

    /// Which of the \p windows of a step are this process's: consecutive ones, as many for all, but for one.
    struct Part {
        std::int64_t begin = 0;
        std::int64_t end = 0;
    };
    [[nodiscard]] Part part(std::int64_t windows) const { return part(windows, world_.rank); }
    /// In how many forwards of at most \p batch windows all processes together compute a step.
    [[nodiscard]] std::int64_t forwards(std::int64_t windows, std::int64_t batch) const;

    /// Weights, and of a resumed training the moments too, of rank 0 for all.
    void start_alike(const AdamW& optimizer, bool moments);
    /// The gates that were asked in all processes: fp32 values from 0 to 1, at most \p most in each. Those
    /// that are 0 count as not asked, which is the same to the penalty.
    [[nodiscard]] std::vector<at::Tensor> gates_of_all(std::vector<at::Tensor> asked, std::int64_t most);
    void sum(std::span<double> numbers);

    /// From now on the gradients of \p optimizer are summed: in buckets that begin their way as soon as the
    /// step's last backward has completed them, in the same order in each process.
    void watch(AdamW& optimizer);
    void last_backward_begins(); ///< without it nothing leaves before finish_gradients()
    /// Sends what is left, and waits for all of it.
    void finish_gradients();
    /// Seconds that finish_gradients() took so far: of the sums, what the backward did not hide.
    [[nodiscard]] double seconds_waited() const { return seconds_waited_; }

    void leave();

private:
    [[nodiscard]] Part part(std::int64_t windows, std::int64_t rank) const {
        return {windows * rank / world_.size, windows * (rank + 1) / world_.size};
    }
    struct Bucket {
        std::int64_t offset = 0, count = 0; ///< in the flat buffer
        std::int64_t parameters = 0;
        std::int64_t missing = 0; ///< of them, in this backward
        std::unique_ptr<Collectives::Pending> sum;
    };
    class Hook;
    void gradient_is_there(std::size_t bucket);
    void send(Bucket& bucket);
    [[nodiscard]] std::vector<Numbers> parts_of(const at::Tensor& tensor) const;

    Collectives* collectives_;
    World world_;
    at::Tensor gradients_;
    at::Tensor staged_;           ///< on the CPU, where the gradients lie on a GPU and the sums do not
    std::vector<Bucket> buckets_; ///< in the order in which they are sent
    std::size_t next_ = 0;
    bool last_backward_ = false;
    double seconds_waited_ = 0;
};

} // namespace ponderscope
