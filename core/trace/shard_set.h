// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/reader.h"

#include <map>
#include <memory>

namespace ponderscope {

/// Shards of one or more runs, read as if one process had recorded each run. Sequences after a missing or
/// unfinished sequence are left out. Shards have no trainings, because one process records a training.
class ShardSet final : public TraceSource {
public:
    /// InputError: missing or repeated shards, shards of different runs, or a file that is not a shard.
    ShardSet(std::filesystem::path name, std::vector<TraceReader> shards);
    ~ShardSet() override;

    [[nodiscard]] const std::filesystem::path& path() const override { return name_; }
    [[nodiscard]] std::vector<std::filesystem::path> files() const override;
    [[nodiscard]] std::shared_ptr<const void> pin_snapshot() const override;
    [[nodiscard]] std::vector<RunInfo> runs() const override;
    [[nodiscard]] std::vector<SequenceInfo> sequences(std::int64_t id) const override;
    [[nodiscard]] std::vector<SignalInfo> signal_infos(std::int64_t id) const override;
    [[nodiscard]] std::optional<ShardInfo> shard(std::int64_t id) const override;
    [[nodiscard]] std::vector<std::pair<std::int64_t, TextLabel>> labels(std::int64_t id) const override;
    [[nodiscard]] std::vector<TrainingInfo> trainings() const override { return {}; }
    [[nodiscard]] std::vector<TrainingQuantity> training_quantities(std::int64_t) const override {
        return {};
    }
    [[nodiscard]] std::vector<TrainingCurve> training_curves(std::int64_t) const override { return {}; }
    [[nodiscard]] TokenColumns tokens(std::int64_t id, std::int64_t sequence, std::int64_t begin,
                                      std::int64_t end) const override;
    [[nodiscard]] std::optional<SignalChunk> signal(std::int64_t id, std::int64_t sequence,
                                                    const std::string& name, std::int64_t begin,
                                                    std::int64_t end) const override;
    [[nodiscard]] std::string text(std::int64_t id, std::int64_t sequence) const override;
    [[nodiscard]] std::string token_bytes(std::int64_t id, std::int32_t token) const override;
    [[nodiscard]] std::vector<std::pair<std::int32_t, std::string>>
    vocabulary(std::int64_t id) const override;
    [[nodiscard]] std::vector<FaultInfo> faults(std::int64_t id) const override;
    [[nodiscard]] const std::vector<std::string>& notices() const override { return notices_; }

private:
    struct Run;
    struct Place;
    [[nodiscard]] const Run& run(std::int64_t id) const;
    [[nodiscard]] const Run& index_of(const Run& run) const;
    void make_index(const Run& run) const;
    [[nodiscard]] const Place& place_of(std::int64_t id, std::int64_t sequence) const;

    std::filesystem::path name_;
    std::vector<std::string> notices_;
    std::vector<TraceReader> readers_;
    std::vector<std::unique_ptr<Run>> runs_;
};

} // namespace ponderscope
