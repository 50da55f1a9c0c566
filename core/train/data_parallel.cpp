// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/data_parallel.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

namespace ponderscope {

namespace {

/// A bucket is large enough for its sum to be worth a message and small enough for the first one to leave
/// early (Li et al. 2020, "PyTorch Distributed": 25 MB on clusters).
constexpr std::int64_t largest_bucket = std::int64_t{25 << 20} / 4;
constexpr std::int64_t smallest_bucket = 64 << 10;

Numbers numbers_of(const at::Tensor& flat) {
    return {flat.data_ptr(), flat.numel(), flat.scalar_type() == at::kDouble};
}

} // namespace

/// Called by autograd when a parameter's gradient has been added to its place.
class DataParallel::Hook final : public torch::autograd::PostAccumulateGradHook {
public:
    Hook(DataParallel& owner, std::size_t bucket) : owner_(owner), bucket_(bucket) {}
    void operator()(const at::Tensor&) override { owner_.gradient_is_there(bucket_); }

private:
    DataParallel& owner_;
    std::size_t bucket_;
};

DataParallel::DataParallel(Collectives* collectives, World world)
    : collectives_(collectives), world_(std::move(world)) {
    if (collectives_ == nullptr) {
        world_ = {};
    }
}

DataParallel::~DataParallel() = default;

std::int64_t DataParallel::forwards(std::int64_t windows, std::int64_t batch) const {
    std::int64_t count = 0;
    for (std::int64_t rank = 0; rank < world_.size; ++rank) {
        const Part one = part(windows, rank);
        count += (one.end - one.begin + batch - 1) / batch;
    }
    return count;
}

void DataParallel::start_alike(const AdamW& optimizer, bool moments) {
    if (alone()) {
        return;
    }
    for (at::Tensor buffer : optimizer.buffers(moments)) {
        const bool staged = buffer.is_cuda() && !collectives_->on_gpu();
        const at::Tensor here = staged ? buffer.to(at::kCPU) : buffer;
        collectives_->broadcast(numbers_of(here));
        if (staged) {
            buffer.copy_(here);
        }
    }
}

std::vector<at::Tensor> DataParallel::gates_of_all(std::vector<at::Tensor> asked, std::int64_t most) {
    if (alone()) {
        return asked;
    }
    const at::Device device = gradients_.device();
    at::Tensor all = at::zeros(
        {world_.size, most},
        at::TensorOptions().dtype(at::kFloat).device(collectives_->on_gpu() ? device : at::Device(at::kCPU)));
    std::int64_t place = 0;
    for (const at::Tensor& values : asked) {
        all[world_.rank].narrow(0, place, values.numel()).copy_(values);
        place += values.numel();
    }
    collectives_->sum(numbers_of(all)); // zeros are added to each
    return {all.masked_select(all > 0).to(device)};
}

void DataParallel::sum(std::span<double> numbers) {
    if (alone()) {
        return;
    }
    if (!collectives_->on_gpu()) {
        collectives_->sum({numbers.data(), static_cast<std::int64_t>(numbers.size()), true});
        return;
    }
    const at::Tensor here =
        at::from_blob(numbers.data(), {static_cast<std::int64_t>(numbers.size())}, at::kDouble);
    at::Tensor there = here.to(gradients_.device());
    collectives_->sum(numbers_of(there));
    here.copy_(there);
}

/// Autograd completes gradients from the last layer to the first, and the buffer holds them from the first to
/// the last, those that do not decay (biases, norms of all layers) behind the others: from the back of the
/// first half to its front, and then the second half.
void DataParallel::watch(AdamW& optimizer) {
    if (alone()) {
        return;
    }
    gradients_ = optimizer.gradients();
    const bool staged = gradients_.is_cuda() && !collectives_->on_gpu();
    if (staged) {
        staged_ = at::empty_like(gradients_, gradients_.options().device(at::kCPU).pinned_memory(true));
        buckets_.push_back({0, gradients_.numel(), 0, 0, nullptr});
        return;
    }
    std::vector<AdamW::Place> places = optimizer.places();
    const std::int64_t wanted = std::clamp(gradients_.numel() / 8, smallest_bucket, largest_bucket);
    std::stable_sort(places.begin(), places.end(), [](const AdamW::Place& a, const AdamW::Place& b) {
        return a.decays != b.decays ? a.decays : a.offset > b.offset;
    });
    bool decays = places.front().decays;
    std::int64_t end =
        decays ? optimizer.decaying() : gradients_.numel(); // of the bucket that grows downwards
    for (const AdamW::Place& place : places) {
        if (buckets_.empty() || buckets_.back().count >= wanted || place.decays != decays) {
            if (place.decays != decays) {
                end = gradients_.numel();
            } else if (!buckets_.empty()) {
                end = buckets_.back().offset;
            }
            decays = place.decays;
            buckets_.emplace_back();
        }
        Bucket& bucket = buckets_.back();
        bucket.offset = place.offset;
        bucket.count = end - place.offset;
        ++bucket.parameters;
        torch::autograd::impl::set_post_acc_grad_hooks(place.parameter,
                                                       std::make_unique<Hook>(*this, buckets_.size() - 1));
    }
}

void DataParallel::last_backward_begins() {
    last_backward_ = true;
    for (Bucket& bucket : buckets_) {
        bucket.missing = bucket.parameters;
    }
}

void DataParallel::gradient_is_there(std::size_t bucket) {
    if (!last_backward_) {
        return;
    }
    if (--buckets_[bucket].missing < 0) {
        throw std::logic_error("a parameter's gradient came twice in a backward");
    }
    // In this order in each process, whatever the order in which gradients come there.
    while (next_ < buckets_.size() && buckets_[next_].missing == 0) {
        send(buckets_[next_++]);
    }
}

void DataParallel::send(Bucket& bucket) {
    bucket.sum = collectives_->begin_sum(
        numbers_of((staged_.defined() ? staged_ : gradients_).narrow(0, bucket.offset, bucket.count)));
}

void DataParallel::finish_gradients() {
    if (alone()) {
        return;
    }
    const auto began = std::chrono::steady_clock::now();
    last_backward_ = false;
    if (staged_.defined()) {
        staged_.copy_(gradients_);
    }
    // Parameters that this step did not use have no gradient, and their buckets have not left.
    for (; next_ < buckets_.size(); ++next_) {
        send(buckets_[next_]);
    }
    for (Bucket& bucket : buckets_) {
        bucket.sum->wait();
        bucket.sum.reset();
    }
    next_ = 0;
    if (staged_.defined()) {
        gradients_.copy_(staged_);
    }
    seconds_waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

void DataParallel::leave() {
    if (!alone()) {
        collectives_->leave();
    }
}

} // namespace ponderscope
